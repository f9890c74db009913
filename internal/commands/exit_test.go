package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMainReportsTheEndOfTheProgram(t *testing.T) {
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		run     func(context.Context) error
		code    int
		stderr  string
	}{
		{
			"a program that is done exits with 0", nil,
			func(context.Context) error { return nil }, 0, "",
		},
		{
			"an error is one line for the user", nil,
			func(context.Context) error { return errors.New("no such cluster") }, 1, "error: no such cluster\n",
		},
		{
			"several errors are a line each", nil,
			func(context.Context) error { return errors.Join(errors.New("one"), errors.New("two")) },
			1, "error: one\nerror: two\n",
		},
		{
			"a signal ends the context and is no error",
			[]os.Signal{syscall.SIGTERM},
			func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("watching: %w", ctx.Err()) }, 0, "",
		},
		{
			"an error after a signal is still one",
			[]os.Signal{syscall.SIGTERM},
			func(ctx context.Context) error { <-ctx.Done(); return errors.New("disk full") },
			1, "error: disk full\n",
		},
		{
			"a cancellation without a signal is an error", nil,
			func(context.Context) error { return context.Canceled }, 1, "error: context canceled\n",
		},
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
			if diff := cmp.Diff(tt.stderr, stderr.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
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
		t.Run(s.String(), func(t *testing.T) {
			code := Main(func(ctx context.Context) error {
				if err := syscall.Kill(os.Getpid(), s); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			})
			if code != 0 {
				t.Errorf("code is %d, want 0", code)
			}
		})
	}
}
