// Package plugin implements kubectl-keyturn: commands that query an installation from a user's own machine and with their own permissions.
// It finds the installation in the cluster, reads the settings of its actuator there, and connects to its NATS through the API server.
package plugin
