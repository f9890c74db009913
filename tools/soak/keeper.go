package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/programs"
)

const (
	// backSoon is how long a program may take to be ready again once everything that it needs is available.
	backSoon = 3 * time.Minute
	// restartDelay is the pause before a program that has ended by itself is started again.
	restartDelay = time.Second
	// stopGrace is how long a program may take to end by itself.
	stopGrace = 15 * time.Second
)

// keeper keeps one program running, like a kubelet: it restarts the program if that has ended by itself.
type keeper struct {
	name  string
	begin func() (*programs.Program, error)
	// ended is called when the program has ended by itself.
	ended   func(*programs.Program)
	running sync.WaitGroup

	mu      sync.Mutex
	program *programs.Program
	// down says that the program is not to run.
	down bool
	stop chan struct{}
}

// start starts the program.
func (k *keeper) start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down, k.stop = false, make(chan struct{})
	return k.launch(k.stop)
}

// launch starts the program. It must be called with the lock held.
func (k *keeper) launch(stop <-chan struct{}) error {
	program, err := k.begin()
	if err != nil {
		return fmt.Errorf("starting the %s: %w", k.name, err)
	}
	k.program = program
	k.running.Go(func() { k.mind(program, stop) })
	return nil
}

// mind restarts the program when it ends, unless it is not to run.
func (k *keeper) mind(program *programs.Program, stop <-chan struct{}) {
	select {
	case <-program.Done():
	case <-stop:
		return
	}
	k.mu.Lock()
	down := k.down
	k.mu.Unlock()
	if down {
		return
	}
	k.ended(program)
	select {
	case <-stop:
		return
	case <-time.After(restartDelay):
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.down {
		// If it cannot be started, it does not become ready, and whoever waits for that reports it.
		_ = k.launch(stop)
	}
}

// kill ends the program like a crash. It stays down until start is called.
func (k *keeper) kill() {
	if program := k.takeDown(); program != nil {
		program.Kill()
	}
	k.running.Wait()
}

// close ends the program.
func (k *keeper) close() {
	if program := k.takeDown(); program != nil {
		_ = program.Resume() // it may be suspended if the soak was interrupted
		// How it ends no longer matters.
		_ = program.Stop(stopGrace)
	}
	k.running.Wait()
}

func (k *keeper) takeDown() *programs.Program {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.down && k.stop != nil {
		k.down = true
		close(k.stop)
	}
	return k.program
}

// now returns the currently running program.
func (k *keeper) now() *programs.Program {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.program
}

// ready waits until the program reports that it is ready.
func (k *keeper) ready(ctx context.Context) error {
	last := "it was not asked"
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, backSoon, true, func(ctx context.Context) (bool, error) {
		status, body, err := k.now().Get(ctx, "health", "/readyz")
		if last = body; err != nil {
			last = err.Error()
		}
		return err == nil && status == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("the %s is not ready %s after: %s", k.name, backSoon, strings.TrimSpace(last))
	}
	return nil
}

// crash returns the incident of the crash that a program's log reports, if it does.
func crash(name string, p *programs.Program) []incident {
	for line := range strings.Lines(p.Output()) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.Contains(line, "WARNING: DATA RACE") {
			return []incident{{ill: broken, workload: name, at: time.Now(), detail: strings.TrimSpace(line)}}
		}
	}
	return nil
}
