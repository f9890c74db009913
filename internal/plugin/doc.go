// Package plugin is kubectl-keyturn: the commands that people ask an installation with, from their own machine and with their own rights. It
// finds the installation in the cluster, takes the settings of its actuator from there, and reaches its NATS through the API server.
package plugin
