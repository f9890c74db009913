package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStackStopsInReverseOrderAndJoinsErrors(t *testing.T) {
	errOne := errors.New("one is broken")
	var order []string
	stack := &stack{logger: slog.New(slog.DiscardHandler), limit: time.Second}
	stack.onStop("one", func(context.Context) error { order = append(order, "one"); return errOne })
	stack.onStop("two", func(context.Context) error { order = append(order, "two"); return nil })
	stack.onStop("three", func(context.Context) error { order = append(order, "three"); return context.Canceled })

	err := stack.stop(t.Context())
	if diff := cmp.Diff([]string{"three", "two", "one"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if !errors.Is(err, errOne) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not hold both", err)
	}
	if diff := cmp.Diff("stopping three: context canceled\nstopping one: one is broken", err.Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if err := stack.stop(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("stopping again did something: %v, %v", err, order)
	}
}

func TestStackIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop func(release <-chan struct{}) func(context.Context) error
		took time.Duration
		want error
	}{
		{
			"a step that obeys its context ends with the limit",
			func(<-chan struct{}) func(context.Context) error {
				return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			}, 3 * time.Second, context.DeadlineExceeded,
		},
		{
			"a step that ignores its context is left behind",
			func(release <-chan struct{}) func(context.Context) error {
				return func(context.Context) error { <-release; return nil }
			}, 3*time.Second + stopGrace, errStopTimeout,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				release := make(chan struct{})
				defer close(release)
				after := false
				stack := &stack{logger: slog.New(slog.NewJSONHandler(&out, nil)), limit: 3 * time.Second}
				stack.onStop("quick", func(context.Context) error { after = true; return nil })
				stack.onStop("stuck", tt.stop(release))

				began := time.Now()
				err := stack.stop(t.Context())
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if !errors.Is(err, tt.want) {
					t.Errorf("error is %v, want %v", err, tt.want)
				}
				if !after {
					t.Error("the step below the stuck one did not run")
				}
				var line map[string]any
				if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["step"] != "stuck" || line["seconds"] != tt.took.Seconds() {
					t.Errorf("log is %s (%v), want one line about the stuck step", out.String(), err)
				}
			})
		})
	}
}

func TestStackRunsEveryStepAfterTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := 0
	stack := &stack{logger: slog.New(slog.DiscardHandler), limit: time.Second}
	for range 3 {
		stack.onStop("step", func(ctx context.Context) error { ran++; return ctx.Err() })
	}
	if err := stack.stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the context's", err)
	}
	if ran != 3 {
		t.Errorf("%d steps ran, want 3", ran)
	}
}
