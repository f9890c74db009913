package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin makes the kernel run the process on some cores only, which are counted from 0. Programs in Go 1.25 or later notice that.
func (p *Process) Pin(cores ...int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	// A thread that starts has the cores of that which starts it, which may not be pinned yet: then another look finds it.
	pinned := map[int]bool{}
	for {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
		if err != nil {
			return fmt.Errorf("pin %s: %w", p.name, err)
		}
		before := len(pinned)
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil || pinned[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("pin %s: %w", p.name, err)
			}
			pinned[tid] = true
		}
		if len(pinned) == before {
			return nil
		}
	}
}
