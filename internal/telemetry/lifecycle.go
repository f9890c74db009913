package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

const (
	// slowStop is how long a step of a Stack may take before it is worth a line in the log.
	slowStop = time.Second
	// stopGrace is what a step gets after its context has ended to return by itself.
	stopGrace = 500 * time.Millisecond
)

// Stack stops what was started, in reverse order. It is owned by one goroutine: no method is safe for concurrent use.
type Stack struct {
	logger *slog.Logger
	limit  time.Duration
	steps  []step
}

// step is one thing to stop.
type step struct {
	name string
	stop func(context.Context) error
}

// NewStack returns an empty stack. Each step gets at most limit to stop.
func NewStack(logger *slog.Logger, limit time.Duration) *Stack {
	return &Stack{logger: logger, limit: limit}
}

// OnStop adds a step. Call it when the thing has started, with how it is stopped.
func (s *Stack) OnStop(name string, stop func(ctx context.Context) error) {
	s.steps = append(s.steps, step{name: name, stop: stop})
}

// Stop runs the steps, last added first, and returns their errors joined. Every step runs, also after another failed or
// ctx ended. A step sees a context that ends with ctx or after the stack's limit; if it does not return soon after
// that, it is left behind and its error is ErrStopTimeout. Afterwards the stack is empty.
func (s *Stack) Stop(ctx context.Context) error {
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

// run runs one step within its time. The goroutine outlives the call only where a step ignores its context, and the
// process is about to end then.
func (s *Stack) run(ctx context.Context, step step) error {
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
		return ErrStopTimeout
	}
}
