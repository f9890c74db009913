package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMainReportsTheEndOfTheProgram(t *testing.T) {
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		run     func(context.Context) error
		code    int
		stderr  string
	}{
		{"a program that is done exits with 0", nil, func(context.Context) error { return nil }, 0, ""},
		{
			"several errors are a line each", nil, func(context.Context) error { return errors.Join(errors.New("one"), errors.New("two")) },
			1, "error: one\nerror: two\n",
		},
		{
			"what a server says controls no terminal", nil,
			func(context.Context) error {
				return errors.New("nats: no \x1b]52;c;cm0=\x07access\r\u009b2J\x9b2J\u202e")
			},
			1, "error: nats: no  ]52;c;cm0= access  2J\uFFFD2J \n",
		},
		{
			"a signal ends the context and is no error",
			[]os.Signal{syscall.SIGTERM},
			func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("watching: %w", ctx.Err()) }, 0, "",
		},
		{"a cancellation without a signal is an error", nil, func(context.Context) error { return context.Canceled }, 1, "error: context canceled\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			signals := make(chan os.Signal, 2)
			for _, s := range tt.signals {
				signals <- s
			}
			var stderr bytes.Buffer
			o := system{signals: signals, stderr: &stderr, exit: func(code int) { t.Errorf("exited with %d", code) }}
			if code := o.main(tt.run); code != tt.code {
				t.Errorf("code is %d, want %d", code, tt.code)
			}
			testkit.WantEqual(t, "stderr", tt.stderr, stderr.String())
		})
	}
}

func TestMainExitsAtOnceOnTheSecondSignal(t *testing.T) {
	signals := make(chan os.Signal)
	exited := make(chan int, 1)
	o := system{signals: signals, stderr: new(bytes.Buffer), exit: func(code int) { exited <- code }}
	o.main(func(ctx context.Context) error {
		signals <- syscall.SIGTERM
		<-ctx.Done()
		signals <- syscall.SIGINT
		if code := <-exited; code != 130 {
			t.Errorf("code is %d, want 130", code)
		}
		return nil
	})
}

func TestMainHearsTheOperatingSystem(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		code := Main(func(ctx context.Context) error {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if code != 0 {
			t.Errorf("after %s: code is %d, want 0", s, code)
		}
	}
}

func TestDescribeBuild(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8"}
	if got, want := describeBuild("v1.2.0", info), "v1.2.0 (go1.26.8)"; got != want {
		t.Errorf("outside of a repository: got %q, want %q", got, want)
	}
	info.Settings = []debug.BuildSetting{
		{Key: "vcs.revision", Value: "3aa20af"}, {Key: "vcs.time", Value: "2026-11-20T18:33:00Z"}, {Key: "vcs.modified", Value: "true"},
	}
	if got, want := describeBuild("v1.2.0", info), "v1.2.0 (commit 3aa20af with changes, of 2026-11-20T18:33:00Z, go1.26.8)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
