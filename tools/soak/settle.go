package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// quietAtMost is how long the programs may take to settle at the end. The watcher checks every 30 seconds for events that the stream
	// has lost, but after repeated losses only every 16 minutes.
	quietAtMost = 20 * time.Minute
	// quietFor is how long nothing may happen at the end. It is longer than the actuator collects changes or outcomes.
	quietFor = 15 * time.Second
)

// settled waits until the journal is complete, nothing is outdated, and nothing has happened for a while.
func (s *soak) settled(ctx context.Context) error {
	var waiting string
	since, newest := time.Now(), int64(0)
	said := time.Now()
	err := wait.PollUntilContextTimeout(ctx, time.Second, quietAtMost, true, func(ctx context.Context) (bool, error) {
		if waiting = s.unsettled(ctx); waiting == "" {
			waiting = "nothing has happened since a few seconds only"
			if now := s.observer.now().newest(); now != newest {
				since, newest = time.Now(), now
			}
			return time.Since(since) >= quietFor, nil
		}
		since = time.Now()
		if time.Since(said) > 10*time.Second {
			s.say("waiting: %s", waiting)
			said = time.Now()
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, waiting)
	}
	return nil
}

// unsettled returns what has yet to happen, or "" if nothing has.
func (s *soak) unsettled(ctx context.Context) string {
	behind, err := s.observer.behind(ctx, s.plane, namespace)
	switch {
	case err != nil:
		return err.Error()
	case behind != "":
		return "not all versions of the " + behind + " are seen"
	}
	if outdated := s.evidence().outdated(); len(outdated) > 0 {
		first := outdated[0]
		return fmt.Sprintf("workloads wait for %d sources, such as %s for %s@%d: %s",
			len(outdated), first.workload, first.source, first.version, first.detail)
	}
	return ""
}
