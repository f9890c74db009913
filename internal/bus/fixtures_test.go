package bus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	testCluster = "prod-eu"
	testUID     = "5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"
	otherUID    = "0d3c1b0f-6c1d-4f6e-9a53-5f0c2a4e7a11"
)

var testTime = time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC)

func sum(digit string) string { return "k0a1b2c3d:" + strings.Repeat(digit, 32) }

// change returns a change of the content of a Secret, for the test to alter.
func change() events.Change {
	return events.Change{
		Cluster: testCluster, Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db.v2"}, Verb: events.VerbChanged,
		UID: testUID, ResourceVersion: "4711", Fingerprint: sum("2"), Time: testTime,
		Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "vendor=a%b"},
		Keys: map[string]events.Key{
			"password": {Fingerprint: sum("3"), ChangedAt: "4711"}, "user": {Fingerprint: sum("4")}, "old": {ChangedAt: "4000"},
		},
		Changed: []string{"password"}, Previous: sum("1"), ChangedAt: "4711", WrittenAt: testTime.Truncate(time.Second),
	}
}

// changeOf returns a change of a kind and a verb, with the fields that only this kind has.
func changeOf(kind events.Kind, verb events.Verb) events.Change {
	c := change()
	c.Source.Kind, c.Verb = kind, verb
	switch kind {
	case events.KindOpenBao:
		path := events.StorePath{Store: "bao", Namespace: "team-a/eu", Mount: "kv/prod", Path: "shop/db.v2 50%"}
		c.Source, c.UID, c.ResourceVersion = path.Source(), path.Store, "1773500966535897932"
		c.Keys, c.Changed, c.Truncated, c.ChangedAt = nil, nil, true, c.ResourceVersion
		c.Store = &events.StoreState{
			Servers: []string{"https://bao.example.com:8200"}, Engine: events.EngineKV, Version: 7, Revision: "7",
			Operation: "update", By: "kubernetes-shop-db",
		}
	case events.KindCertificate:
		c.Keys, c.Changed = nil, nil
		c.Status = &events.Status{
			Secret: "web-tls", Reason: "Failed", Revision: "12", Expiring: true,
			NotAfter: testTime.AddDate(0, 3, 0).Truncate(time.Second), RenewalTime: testTime.AddDate(0, 0, -1).Truncate(time.Second),
		}
	}
	return c
}

// allOutcomes returns one outcome of each type.
func allOutcomes() []events.Outcome {
	var list []events.Outcome
	for _, verb := range []events.Verb{events.VerbStarted, events.VerbCompleted, events.VerbFailed, events.VerbSkipped, events.VerbHeld} {
		o := outcome()
		o.Verb = verb
		if verb == events.VerbSkipped || verb == events.VerbHeld {
			o.Generation, o.StartedAt, o.Trace = 0, time.Time{}, events.TraceContext{}
		}
		list = append(list, o)
	}
	return list
}

// version returns a change of the named Secret at a resourceVersion, with a content of its own.
func version(name, resourceVersion string) events.Change {
	c := change()
	c.Source.Name, c.UID = name, "uid-"+name
	c.ResourceVersion, c.ChangedAt = resourceVersion, resourceVersion
	c.Keys = map[string]events.Key{"password": {Fingerprint: sum("5"), ChangedAt: resourceVersion}}
	digits := strings.Repeat("0", 32) + resourceVersion
	c.Fingerprint = "k0a1b2c3d:" + digits[len(digits)-32:]
	return c
}

func outcome() events.Outcome {
	return events.Outcome{
		Cluster: testCluster, Verb: events.VerbStarted, ResourceVersion: "4720", Time: testTime, Cause: change().ID(),
		Trace:    events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"},
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web-front", UID: "aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22"},
		Revision: "r1-2f6e9a53", Reason: "content-changed", Message: "Rolled because secret/db.v2 changed.",
		Sources: []events.OutcomeSource{{
			Source: "secret/db.v2", Fingerprint: sum("2"), ResourceVersion: "4711", Keys: []string{"password"}, Event: change().ID(),
		}},
		Generation: 7, StartedAt: testTime,
	}
}

func projection() events.Projection {
	return events.Projection{
		Cluster: testCluster, Verb: events.VerbApplied, ResourceVersion: "4720", Time: testTime, Cause: change().ID(),
		Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"},
		Target: events.Workload{
			Kind: "widget", Namespace: "shop", Name: "web-front", UID: "aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22", APIVersion: "example.org/v1", Resource: "widgets",
		},
		Reason: "applied", Message: "Applied spec.auth.password from secret/db.v2/password.",
		Fields: []events.ProjectedField{{Path: "spec.auth.password", Source: "secret/db.v2", Key: "password", ResourceVersion: "4711"}},
	}
}

// messageWith returns the message of an event, for the test to alter.
func messageWith(t *testing.T, of interface{ Encode() (events.Stored, error) }) *nats.Msg {
	t.Helper()
	encoded, err := of.Encode()
	testkit.Must(t, err)
	msg, err := messageOf(encoded)
	testkit.Must(t, err)
	return msg
}

// errIn returns the error of what has another result, too.
func errIn[T any](_ T, err error) error { return err }

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	var reject *events.RejectError
	if !errors.As(err, &reject) || reject.Reason != reason {
		t.Errorf("got %v, want a RejectError with reason %s", err, reason)
	}
}
