// Command build builds the servers of the test bed before the tests that need them:
//
//	go run ./tests/testbed/cmd/build                  all of them
//	go run ./tests/testbed/cmd/build vault kubectl    only those that are named
//	go run ./tests/testbed/cmd/build vault ./cmd/actuator   also a program of this module, at the same time
//
// Servers in the cache are not built again.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := build.All(ctx, os.Stderr, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		return 1
	}
	return 0
}
