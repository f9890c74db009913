package tests

import (
	"context"
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// lastOf returns the last event of a path in the mount "secret", in the form of sayStore: "rotated create 1". Empty means none.
func (s *storeRig) lastOf(path string) (said string, change events.Change) {
	s.Helper()
	if s.bus == nil {
		s.bus = s.connect()
	}
	source := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: path}.Source()
	last, err := s.bus.Last(s.Context(), events.Subject(s.bus.Cluster(), source))
	if err != nil {
		return "", events.Change{} // none, or NATS is away for a while
	}
	if change, err = last.Change(); err != nil {
		s.Fatal(err)
	}
	return sayStore(change), change
}

// awaitEvent waits until the last event of a path is this one.
func (s *storeRig) awaitEvent(path, want string) events.Change {
	s.Helper()
	var said string
	var change events.Change
	defer func() {
		if said != want {
			s.Logf("the last event of %s is %q", path, said)
		}
	}()
	s.eventually("the last event of "+path+" is "+want, func(context.Context) bool {
		said, change = s.lastOf(path)
		return said == want
	})
	return change
}

// awaitVersion waits until the last event of a path has a verb and a version, and returns it in the form of sayStore. The operation
// is missing if a false or unreadable line made the watcher read the path just before the audit line came.
func (s *storeRig) awaitVersion(path, verb, operation string, version int) (said string) {
	s.Helper()
	heard, seen := fmt.Sprintf("%s %s %d", verb, operation, version), fmt.Sprintf("%s  %d", verb, version)
	s.eventually("the last event of "+path+" is "+heard, func(context.Context) bool {
		said, _ = s.lastOf(path)
		return said == heard || said == seen
	})
	return said
}

// sayStore formats an event about a secret in a store: its verb, operation and version.
func sayStore(change events.Change) string {
	return fmt.Sprintf("%s %s %d", change.Verb, change.Store.Operation, change.Store.Version)
}

// storeEvents returns all events about secrets in the store in order, each with its path in the mount, except those about secrets
// that existed before.
func (s *storeRig) storeEvents() []string {
	s.Helper()
	var list []string
	for _, msg := range s.messages(events.StreamHistory) {
		if !strings.HasPrefix(msg.Subject(), "keyturn.history.v1.demo.openbao.") {
			continue
		}
		event, err := events.FromMsg(msg.Subject(), msg.Headers(), msg.Data())
		if err != nil {
			s.Fatal(err)
		}
		change, err := events.ParseChange(event)
		if err != nil {
			s.Fatal(err)
		}
		path, err := change.Source.StorePath()
		if err != nil {
			s.Fatal(err)
		}
		if change.Verb != events.VerbObserved {
			list = append(list, path.Full()+" "+sayStore(change))
		}
	}
	return list
}

// awaitAsked waits until an ExternalSecret was asked to sync for an event.
func (s *storeRig) awaitAsked(name, event string) {
	s.Helper()
	s.eventually("the ExternalSecret "+name+" is asked to sync for "+event, func(context.Context) bool {
		return s.causeOf(name) == event
	})
}

// causeOf is the event that an ExternalSecret was last asked to sync for.
func (s *storeRig) causeOf(name string) string {
	s.Helper()
	return s.getExternalSecret(name).GetAnnotations()["keyturn.dev/cause"]
}
