package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ofServers is appended to a name for the processor time of the control plane.
const ofServers = " of the control plane"

// processorClock measures the processor time of a contender and of the control plane since the clock was created.
type processorClock struct {
	contender                     contender
	programs                      []*process.Process
	servers                       []*process.Process
	programsBefore, serversBefore []time.Duration
}

func (b *bench) startClock(c contender) (*processorClock, error) {
	clock := &processorClock{contender: c, programs: c.processes(), servers: b.cp.Processes()}
	var err error
	if clock.programsBefore, err = used(clock.programs); err != nil {
		return nil, err
	}
	clock.serversBefore, err = used(clock.servers)
	return clock, err
}

// add adds the time per change, or per second, for n of them: of the contender, of each of its programs by name, and of all servers of the
// control plane.
func (c *processorClock) add(to results, name string, n int) error {
	programs, err := used(c.programs)
	if err != nil {
		return err
	}
	servers, err := used(c.servers)
	if err != nil {
		return err
	}
	each := func(name string, d time.Duration) { to.add(name, c.contender, milliseconds(d)/float64(n)) }
	each(name, sum(programs)-sum(c.programsBefore))
	for i, p := range c.programs {
		if of, ok := ofProgram[p.Name()]; ok {
			each(name+of, programs[i]-c.programsBefore[i])
		}
	}
	each(name+ofServers, sum(servers)-sum(c.serversBefore))
	return nil
}

func sum(times []time.Duration) (total time.Duration) {
	for _, t := range times {
		total += t
	}
	return total
}

// used returns the processor time that each of the processes has used so far.
func used(processes []*process.Process) ([]time.Duration, error) {
	times := make([]time.Duration, len(processes))
	for i, p := range processes {
		var err error
		if times[i], err = p.CPU(); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// calm waits until processes are idle, so that their start is not measured.
func calm(ctx context.Context, processes []*process.Process) error {
	const look, next = 500 * time.Millisecond, 20 * time.Millisecond
	last, err := used(processes)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, look, patience, false, func(context.Context) (bool, error) {
		now, err := used(processes)
		quiet := sum(now)-sum(last) <= next
		last = now
		return quiet, err
	})
	if err != nil {
		return fmt.Errorf("waiting until nothing is left to do: %w", err)
	}
	return nil
}
