package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// Main runs a program and returns its exit code, for os.Exit. The first SIGINT or SIGTERM cancels the context of run; a second one exits
// at once with 128 plus its number, as a shell reports it.
//
// The code is 0 if run returns nil, or context.Canceled after a signal. Any other error goes to stderr, each line of it as "error: ...",
// and the code is 1.
func Main(run func(ctx context.Context) error) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	o := system{signals: signals, stderr: os.Stderr, exit: os.Exit}
	return o.main(run)
}

// system is what Main needs from the operating system.
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
			o.exit(exitCode(second))
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
		fmt.Fprintln(o.stderr, "error: "+line)
	}
	return 1
}

// exitCode returns the exit code of a process that a signal has ended.
func exitCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 1
}
