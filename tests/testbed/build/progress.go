package build

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
)

// reminder is how often a build reports how far it is.
const reminder = 30 * time.Second

// progress reports a build to a log: that it begins, how many packages are compiled after each [reminder], and that it has ended. It is written what
// "go build -v" says, a line for each package that is compiled.
type progress struct {
	log      io.Writer
	title    string
	start    time.Time
	total    int
	compiled atomic.Int64
	stop     chan struct{}
	stopped  chan struct{}
}

// newProgress reports that a build of so many packages begins. The caller must call end.
func newProgress(log io.Writer, title string, total int) *progress {
	p := &progress{log: log, title: title, start: time.Now(), total: total, stop: make(chan struct{}), stopped: make(chan struct{})}
	fmt.Fprintf(log, "testbed: building %s, once: %d packages to compile\n", title, total)
	go p.report()
	return p
}

func (p *progress) report() {
	defer close(p.stopped)
	ticker := time.NewTicker(reminder)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			fmt.Fprintf(p.log, "testbed: %d of %d packages after %s\n", p.compiled.Load(), p.total, time.Since(p.start).Round(time.Second))
		}
	}
}

func (p *progress) Write(lines []byte) (int, error) {
	p.compiled.Add(int64(bytes.Count(lines, []byte("\n"))))
	return len(lines), nil
}

// end reports that the build has ended, unless it has failed.
func (p *progress) end(err error) {
	close(p.stop)
	<-p.stopped
	if err == nil {
		fmt.Fprintf(p.log, "testbed: built %s in %s\n", p.title, time.Since(p.start).Round(time.Second))
	}
}

// packagesToCompile returns how many of the packages of a program are not in Go's cache.
func packagesToCompile(ctx context.Context, dir, pkg string, flags, env []string) (int, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, flags...)
	out, err := goCommand(ctx, dir, append(args, pkg), env...)
	return len(strings.Fields(out)), err
}
