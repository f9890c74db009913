package tests

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// lastOf returns the last event of a path in the mount "secret", in the form of sayStore: "rotated create 1". Empty means none.
func (s *storeRig) lastOf(path string) string {
	s.Helper()
	if s.bus == nil {
		s.bus = s.connect()
	}
	source := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: path}.Source()
	last, err := s.bus.Last(s.Context(), events.Subject(s.bus.Cluster(), source))
	if err != nil {
		return "" // none, or NATS is away for a while
	}
	change, err := last.Change()
	testkit.Must(s, err)
	return sayStore(change)
}

// awaitVersion waits until the last event of a path has a verb and a version. The operation is missing if a false or unreadable line made the watcher
// read the path just before the audit line came.
func (s *storeRig) awaitVersion(path, verb, operation string, version int) {
	s.Helper()
	heard, seen := fmt.Sprintf("%s %s %d", verb, operation, version), fmt.Sprintf("%s  %d", verb, version)
	s.eventually("the last event of "+path+" is "+heard, func(context.Context) bool {
		said := s.lastOf(path)
		return said == heard || said == seen
	})
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
		change, err := storedIn(msg).Change()
		testkit.Must(s, err)
		path, err := change.Source.StorePath()
		testkit.Must(s, err)
		if change.Verb != events.VerbObserved {
			list = append(list, path.Full()+" "+sayStore(change))
		}
	}
	return list
}

// causeOf is the event that an ExternalSecret was last asked to sync for.
func (s *storeRig) causeOf(name string) string {
	s.Helper()
	object, err := s.custom.Resource(externalSecrets).Namespace(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	testkit.Must(s, err)
	return object.GetAnnotations()["keyturn.dev/cause"]
}
