// Package commands has the commands that read the streams, with their flags, for the actuator and for kubectl-keyturn. A Program says what they
// read from.
package commands
