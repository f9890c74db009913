package commands

import (
	"context"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/workload"
)

// Program is the program that has the commands. Its functions are called when a command runs, after its flags are set.
type Program struct {
	// Settings are the settings of the actuator with which commands decide. Flags of the commands set some of them, and the program
	// sets the others.
	Settings *actuate.Options
	// Narrow makes output for people fit into 100 columns.
	Narrow bool
	// Unknown returns the names of the Secrets with settings of the actuator that are not known here. Nil means that all settings are known.
	Unknown func() []string
	// Clients returns the clients that read workloads.
	Clients func() (workload.Clients, error)
	// Streams returns how to reach the streams, and the name of the cluster.
	Streams func(ctx context.Context) (inspect.Streams, error)
}
