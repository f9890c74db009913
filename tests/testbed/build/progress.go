package build

import (
	"fmt"
	"io"
	"time"
)

// reminder is how often a build reports that it is still running.
const reminder = 30 * time.Second

// tell writes to log that something is being built, and again after each [reminder], until built is called with the result.
func tell(log io.Writer, title, estimate string) (built func(error)) {
	start := time.Now()
	fmt.Fprintf(log, "testbed: building %s (once, about %s on two cores)\n", title, estimate)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(reminder)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				fmt.Fprintf(log, "testbed: still building after %s of about %s\n", time.Since(start).Round(time.Second), estimate)
			}
		}
	}()
	return func(err error) {
		close(stop)
		<-stopped
		if err == nil {
			fmt.Fprintf(log, "testbed: built %s in %s\n", title, time.Since(start).Round(time.Second))
		}
	}
}
