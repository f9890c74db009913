package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// coresApart returns the cores of the servers and those of the programs on a machine with n cores: the first half and two more. There are none where
// both have to share all cores.
func coresApart(n int) (servers, programs []int) {
	if n < 4 {
		return nil, nil
	}
	for core := range n / 2 {
		servers = append(servers, core)
	}
	return servers, []int{n / 2, n/2 + 1}
}

// isApart reports whether the servers and the programs have cores of their own.
func isApart() bool {
	servers, _ := coresApart(runtime.NumCPU())
	return len(servers) > 0
}

// coresFact says which cores are whose.
func coresFact(n int) string {
	servers, programs := coresApart(n)
	if len(servers) == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (servers on %d of them, programs on %d others)", n, len(servers), len(programs))
}

// pin has processes run on some cores only. It does nothing if there are none.
func pin(processes []*process.Process, cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	for _, p := range processes {
		if err := p.Pin(cores...); err != nil {
			return err
		}
	}
	return nil
}

// startOnCores starts a contender, on the cores of the programs if the servers have others.
func (b *bench) startOnCores(ctx context.Context, c contender) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	_, cores := coresApart(runtime.NumCPU())
	if c.name() == contenderOneCore {
		cores = cores[:1]
	}
	processes := c.processes()
	if a, ok := c.(*accompanied); ok {
		processes = slices.Concat(processes, a.by.processes())
	}
	return pin(processes, cores)
}

// oneCore is the same installation with one core instead of two.
func (k *keyturn) oneCore() *keyturn { return keyturnOf(contenderOneCore, k.programs) }

// secondCore returns the line about what the second core of the programs changes.
func (r *report) secondCore() line {
	one, two := r.results.of(burst300, contenderOneCore), r.results.of(burst300, contenderKeyturn)
	if len(one) == 0 || len(two) == 0 {
		return line{}
	}
	return line{
		What:    fmt.Sprintf("%s, with one core for the programs; %.0f/s with two", r.changes(300), median(two)),
		Keyturn: figure("%.0f/s", one), Ratio: figure("%.2f", r.results.ratios(burst300, contenderOneCore, contenderKeyturn, median)),
	}
}
