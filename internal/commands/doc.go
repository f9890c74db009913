// Package commands has what the command lines of all programs and of kubectl-keyturn share: flags and environment, their reference, the version, and
// the exit code (Main).
//
// It also has the commands that read the streams, with their flags, for the actuator and for kubectl-keyturn. A Program says what they read from.
package commands
