package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	// slowStop is how long a step of a stack may take before it is logged.
	slowStop = time.Second
	// stopGrace is how long a step may take to return after its context has ended.
	stopGrace = 500 * time.Millisecond
)

// errStopTimeout means that a step of the shutdown did not return in time and was abandoned.
var errStopTimeout = errors.New("not stopped in time")

// stack stops the started parts in reverse order. One goroutine owns it: its methods are not safe for concurrent use.
type stack struct {
	logger *slog.Logger
	limit  time.Duration // for each step
	steps  []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// OnStop adds a step. Call it after the part to stop has started.
func (s *stack) OnStop(name string, stop func(ctx context.Context) error) {
	s.steps = append(s.steps, step{name: name, stop: stop})
}

// Go runs work in the background. The shutdown ends its context, and returns its error.
func (s *stack) Go(ctx context.Context, name string, work func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	s.OnStop(name, func(context.Context) error {
		cancel()
		return <-ended
	})
}

// stop runs the steps, last added first, and returns their errors joined. Every step runs, even if another failed or ctx has ended. The
// context of a step ends with ctx or after the limit; a step that does not return soon after that is abandoned with errStopTimeout.
// Afterwards the stack is empty.
func (s *stack) stop(ctx context.Context) error {
	steps := s.steps
	s.steps = nil
	var errs []error
	for _, step := range slices.Backward(steps) {
		began := time.Now()
		err := s.run(ctx, step)
		if took := time.Since(began); took >= slowStop {
			s.logger.WarnContext(ctx, "slow to stop", "step", step.name, "seconds", took.Seconds())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}

// run runs one step within its limit. The goroutine outlives the call only if a step ignores its context; the process is about to end
// then.
func (s *stack) run(ctx context.Context, step step) error {
	abandon := time.NewTimer(s.limit + stopGrace)
	defer abandon.Stop()
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- step.stop(ctx) }()
	select {
	case err := <-done:
		return err
	case <-abandon.C:
		return errStopTimeout
	}
}
