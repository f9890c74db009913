package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
)

// Main runs a program and returns its exit code, for os.Exit. The first SIGINT or SIGTERM cancels the context of run; a second one exits
// at once with 128 plus its number, as a shell reports it.
//
// The code is 0 if run returns nil, or context.Canceled after a signal. Any other error is printed to stderr, each line as "error: ...", and the code
// is 1. Parts of an error may come from servers, so control characters are replaced.
func Main(run func(ctx context.Context) error) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	o := system{signals: signals, stderr: os.Stderr, exit: os.Exit}
	return o.main(run)
}

// NewRoot returns the command of a program, without the function that runs it. Environment variables also set its flags and those of its subcommands.
// A program is a binary, or a command of one.
func NewRoot(use, short, version string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + "\n\n" + EnvironmentUsage,
		Args: cobra.NoArgs, Version: BuildVersion(version), SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return Environment(cmd.Flags(), os.LookupEnv) },
	}
}

// system is the part of the operating system that Main uses.
type system struct {
	signals <-chan os.Signal
	stderr  io.Writer
	exit    func(code int)
}

func (o *system) main(run func(ctx context.Context) error) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-o.signals:
			cancel()
		case <-done:
			return
		}
		select {
		case second := <-o.signals:
			number, _ := second.(syscall.Signal)
			o.exit(128 + int(number))
		case <-done:
		}
	})
	err := run(ctx)
	signalled := ctx.Err() != nil
	close(done)
	watch.Wait()

	if err == nil || signalled && errors.Is(err, context.Canceled) {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(o.stderr, "error: "+events.Printable(line))
	}
	return 1
}

// BuildVersion returns the text of --version: the version, and the commit with its date if the go command has stamped them into the binary, as it
// does when it builds in a Git repository.
func BuildVersion(version string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return describeBuild(version, info)
}

func describeBuild(version string, info *debug.BuildInfo) string {
	stamps := map[string]string{}
	for _, setting := range info.Settings {
		stamps[setting.Key] = setting.Value
	}
	var parts []string
	if commit := stamps["vcs.revision"]; commit != "" {
		if stamps["vcs.modified"] == "true" {
			commit += " with changes"
		}
		parts = append(parts, "commit "+commit)
	}
	if date := stamps["vcs.time"]; date != "" {
		parts = append(parts, "of "+date)
	}
	return version + " (" + strings.Join(append(parts, info.GoVersion), ", ") + ")"
}
