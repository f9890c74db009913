package program

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestStackStopsInReverseOrderAndJoinsErrors(t *testing.T) {
	errOne := errors.New("one is broken")
	var order []string
	stack := &stack{logger: slog.New(slog.DiscardHandler), limit: time.Second}
	stack.OnStop("one", func(context.Context) error { order = append(order, "one"); return errOne })
	stack.OnStop("two", func(context.Context) error { order = append(order, "two"); return nil })
	stack.OnStop("three", func(context.Context) error { order = append(order, "three"); return context.Canceled })

	err := stack.stop(t.Context())
	testkit.WantEqual(t, "order", []string{"three", "two", "one"}, order)
	if !errors.Is(err, errOne) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not hold both", err)
	}
	testkit.WantEqual(t, "error", "stopping three: context canceled\nstopping one: one is broken", err.Error())
	if err := stack.stop(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("stopping again did something: %v, %v", err, order)
	}
}

func TestAStepThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		release := make(chan struct{})
		defer close(release)
		after := false
		stack := &stack{logger: slog.New(slog.NewJSONHandler(&out, nil)), limit: 3 * time.Second}
		stack.OnStop("quick", func(context.Context) error { after = true; return nil })
		stack.OnStop("stuck", func(context.Context) error { <-release; return nil })
		began := time.Now()
		err := stack.stop(t.Context())
		if took, want := time.Since(began), 3*time.Second+stopGrace; took != want || !errors.Is(err, errStopTimeout) {
			t.Errorf("got %v after %s, want %v after %s", err, took, errStopTimeout, want)
		}
		if !after {
			t.Error("the step below the stuck one did not run")
		}
		if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"step":"stuck"`) {
			t.Errorf("log is %s, want one line about the stuck step", out.String())
		}
	})
}
