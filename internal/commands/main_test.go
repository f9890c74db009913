package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
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

func TestDescribeBuild(t *testing.T) {
	stamp := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	tests := []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{
			name:     "of a commit",
			settings: []debug.BuildSetting{stamp("vcs", "git"), stamp("vcs.revision", "3aa20af"), stamp("vcs.time", "2026-11-20T18:33:00Z"), stamp("vcs.modified", "false")},
			want:     "v1.2.0 (commit 3aa20af, of 2026-11-20T18:33:00Z, go1.26.8)",
		},
		{
			name:     "of a commit and what was changed since",
			settings: []debug.BuildSetting{stamp("vcs.revision", "3aa20af"), stamp("vcs.time", "2026-11-20T18:33:00Z"), stamp("vcs.modified", "true")},
			want:     "v1.2.0 (commit 3aa20af with changes, of 2026-11-20T18:33:00Z, go1.26.8)",
		},
		{name: "outside of a repository", want: "v1.2.0 (go1.26.8)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := describeBuild("v1.2.0", &debug.BuildInfo{GoVersion: "go1.26.8", Settings: test.settings}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestBuildVersionIsOfThisBinary(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("a test has no build information")
	}
	if got := BuildVersion("v1.2.0"); !strings.HasPrefix(got, "v1.2.0 (") || !strings.HasSuffix(got, info.GoVersion+")") {
		t.Errorf("got %q", got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
