package main

import (
	"context"
	"slices"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// runs is what the contenders have in common that act on the Secrets of Keyturn.
type runs struct {
	called string
	// accounts are the names of the service accounts.
	accounts []string
	started  []*programs.Program
}

func (r *runs) name() string { return r.called }

func (r *runs) owner() string { return contenderKeyturn }

func (r *runs) users() []string {
	var users []string
	for _, account := range r.accounts {
		users = append(users, testbed.ServiceAccountUser(programs.SystemNamespace, account))
	}
	return users
}

func (r *runs) processes() []*process.Process {
	var processes []*process.Process
	for _, program := range r.started {
		processes = append(processes, program.Process)
	}
	return processes
}

// begin adds a program that was started.
func (r *runs) begin(program *programs.Program, err error) error {
	if err == nil {
		r.started = append(r.started, program)
	}
	return err
}

func (r *runs) ready(ctx context.Context) error {
	for _, program := range r.started {
		if err := program.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *runs) stop() {
	for _, program := range slices.Backward(r.started) {
		// Unfinished work is on the stream, so it does not matter how it ends.
		_ = program.Stop(stopGrace)
	}
	r.started = nil
}
