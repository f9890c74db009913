package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

func openLog(opts Options) (*os.File, error) {
	if opts.LogFile == "" {
		return os.CreateTemp("", opts.Name+"-*.log")
	}
	return os.Create(opts.LogFile)
}

// Output returns everything that the process has written to stdout and stderr, in order.
func (p *Process) Output() string {
	out, err := os.ReadFile(p.logFile)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return string(out)
}

// WaitLog waits until a line of the output contains the substring, and returns the first such line, which may have been
// written long ago. It gives up after [StartTimeout]. If the process ends without such a line, the error is [ErrExited], with the
// end of the output.
func (p *Process) WaitLog(ctx context.Context, substring string) (string, error) {
	file, err := os.Open(p.logFile)
	if err != nil {
		return "", fmt.Errorf("%s: read the log: %w", p.name, err)
	}
	defer file.Close()
	ctx, stop := running.WithTimeout(ctx, StartTimeout)
	defer stop()
	log := follower{r: bufio.NewReader(file)}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		// Check this before reading the log, so that lines written just before the end are still found.
		ended := p.Ended()
		line, found, err := log.find(substring)
		switch {
		case found:
			return line, nil
		case err == nil && ended:
			err = ErrExited
		case err == nil:
			err = context.Cause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("%s: wait for %q in the log: %w\n%s", p.name, substring, err, p.Tail())
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// follower reads the lines of a file that is being written.
type follower struct {
	r       *bufio.Reader
	partial string // the beginning of a line that was not complete yet
}

// find returns the next line with the substring, if the file already has one.
func (f *follower) find(substring string) (line string, found bool, err error) {
	for {
		read, err := f.r.ReadString('\n')
		f.partial += read
		if err == io.EOF {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		line := strings.TrimSuffix(f.partial, "\n")
		f.partial = ""
		if strings.Contains(line, substring) {
			return line, true, nil
		}
	}
}

// Tail returns the last lines of [Process.Output], enough to see why the program failed.
func (p *Process) Tail() string { return tail([]byte(p.Output())) }

// tail returns the last lines of a log, enough to see why a program has failed.
func tail(log []byte) string {
	const lines, size = 30, 8 << 10
	text := string(log[max(0, len(log)-size):])
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
