package commands

import (
	"context"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/workload"
)

// Program is what has the commands. Its functions are called when a command runs, once its flags are set.
type Program struct {
	// Settings are those of the actuator by which commands decide. Flags of the commands set some of them, and the program the others.
	Settings *actuate.Options
	// Narrow has what is for people fit into 100 columns.
	Narrow bool
	// Unknown returns the names of the Secrets with settings of the actuator that are not known here. Nil: all are known.
	Unknown func() []string
	// Clients returns clients of the workloads.
	Clients func() (workload.Clients, error)
	// Streams returns how to reach the streams, and of which cluster.
	Streams func(ctx context.Context) (inspect.Streams, error)
}
