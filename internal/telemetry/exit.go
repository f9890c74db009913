package telemetry

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

// Main runs a program and returns its exit code, for os.Exit. The context of run ends with the first SIGINT or SIGTERM;
// a second one exits at once with 128 and its number, as a shell would report it.
//
// The code is 0 where run returns nil, or context.Canceled after a signal. Any other error is one for the user: it goes
// to stderr, each line of it as "error: ...", and the code is 1.
func Main(run func(ctx context.Context) error) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	p := process{signals: signals, stderr: os.Stderr, exit: os.Exit}
	return p.main(run)
}

// process is what Main needs of the operating system.
type process struct {
	signals <-chan os.Signal
	stderr  io.Writer
	exit    func(code int)
}

func (p *process) main(run func(ctx context.Context) error) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-p.signals:
			cancel()
		case <-done:
			return
		}
		select {
		case second := <-p.signals:
			p.exit(exitCode(second))
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
		fmt.Fprintln(p.stderr, "error: "+line)
	}
	return 1
}

// exitCode is the code of a process that ended by a signal.
func exitCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 1
}
