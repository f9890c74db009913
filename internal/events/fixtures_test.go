package events

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	testCluster = "prod-eu"
	testUID     = "5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"
)

var testTime = time.Date(2026, 3, 14, 15, 9, 26, 535897932, time.UTC)

func sum(digit string) string { return "k0a1b2c3d:" + strings.Repeat(digit, 32) }

// change returns a change of the content of a Secret, for the test to alter.
func change() Change {
	return Change{
		Cluster: testCluster, Source: Source{Kind: KindSecret, Namespace: "shop", Name: "db.v2"}, Verb: VerbChanged,
		UID: testUID, ResourceVersion: "4711", Fingerprint: sum("2"), Time: testTime,
		Trace: TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "vendor=a%b"},
		Keys: map[string]Key{
			"password": {Fingerprint: sum("3"), ChangedAt: "4711"},
			"user":     {Fingerprint: sum("4")},
			"old":      {ChangedAt: "4000"},
		},
		Changed: []string{"password"}, Previous: sum("1"), ChangedAt: "4711",
		WrittenAt: testTime.Truncate(time.Second),
	}
}

// countedChange returns a change of a Secret with more keys than are listed. Of the last bucket, the only key was removed.
func countedChange() Change {
	c := change()
	c.Truncated = true
	c.Buckets = map[string]Key{"0f": {Fingerprint: sum("5"), ChangedAt: "4500"}, "a3": {Fingerprint: sum("6")}, "c0": {ChangedAt: "4711"}}
	return c
}

func outcome() Outcome {
	return Outcome{
		Cluster: testCluster, Verb: VerbStarted, ResourceVersion: "4720", Time: testTime, Cause: change().ID(),
		Trace:    TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"},
		Workload: Workload{Kind: "deployment", Namespace: "shop", Name: "web-front", UID: "aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22"},
		Revision: "r1-2f6e9a53", Reason: "content-changed", Message: "Rolled because secret/db.v2 changed.",
		Sources: []OutcomeSource{{
			Source: "secret/db.v2", Fingerprint: sum("2"), ResourceVersion: "4711", Keys: []string{"password"}, Event: change().ID(),
		}},
		Generation: 7, StartedAt: testTime,
	}
}

// configuredOutcome is about a workload of a kind that comes from configuration.
func configuredOutcome() Outcome {
	o := outcome()
	o.Verb = VerbCompleted
	o.Workload.Kind, o.Workload.APIVersion, o.Workload.Resource = "prometheus", "monitoring.coreos.com/v1", "prometheuses"
	return o
}

// storePath names a secret in a store, with every kind of character that needs escaping.
var storePath = StorePath{Store: "bao", Namespace: "team-a/eu", Mount: "kv/prod", Path: "shop/db.v2 50%"}

// changeOf returns a change of a kind and a verb, with the fields that only this kind has.
func changeOf(kind Kind, verb Verb) Change {
	c := change()
	c.Source.Kind, c.Verb = kind, verb
	switch kind {
	case KindSecret, KindConfigMap:
	case KindOpenBao:
		c.Source, c.UID, c.ResourceVersion = storePath.Source(), storePath.Store, "1773500966535897932"
		c.Keys, c.Changed, c.Truncated, c.ChangedAt = nil, nil, true, c.ResourceVersion
		c.Store = &StoreState{
			Servers: []string{"https://bao.example.com:8200"}, Engine: EngineKV, Version: 7, Revision: "7",
			Operation: "update", By: "kubernetes-shop-db",
		}
	case KindExternalSecret:
		c.Keys, c.Changed = nil, nil
		c.Status = &Status{Secret: "db", Reason: "SecretSynced", Revision: "3-7c2b41"}
		c.Cause = &Cause{Event: "bao/root/secret/shop/db/7"}
		if verb == VerbFailed {
			c.Status.Reason, c.Cause.Earlier = "SecretSyncedError", "bao/root/secret/shop/db/6"
		}
	case KindCertificate:
		c.Keys, c.Changed = nil, nil
		c.Status = &Status{
			Secret: "web-tls", Reason: "Ready", Revision: "12",
			NotAfter: testTime.AddDate(0, 3, 0).Truncate(time.Second), RenewalTime: testTime.AddDate(0, 2, 0).Truncate(time.Second),
		}
		if verb == VerbFailed {
			c.Status.Reason, c.Status.Expiring = "Failed", true
			c.Status.RenewalTime = testTime.AddDate(0, 0, -1).Truncate(time.Second)
		}
	}
	if kind == KindSecretProviderClass {
		c.Keys, c.Changed, c.Truncated, c.Recent = nil, nil, true, []string{sum("1"), sum("2")}
	}
	switch verb {
	case VerbObserved:
		c.Changed, c.Previous, c.ChangedAt, c.Cause = nil, "", "", nil
	case VerbDeleted:
		c.Status, c.Cause = nil, nil
	}
	return c
}

// allChanges returns one change of each type.
func allChanges() []Change {
	var list []Change
	for _, kind := range []Kind{KindConfigMap, KindSecret, KindOpenBao, KindExternalSecret, KindCertificate, KindSecretProviderClass} {
		for _, verb := range verbs[kind] {
			list = append(list, changeOf(kind, verb))
		}
	}
	return list
}

// allOutcomes returns one outcome of each type.
func allOutcomes() []Outcome {
	var list []Outcome
	for _, verb := range verbs[KindRollout] {
		o := outcome()
		o.Verb = verb
		if verb == VerbSkipped || verb == VerbHeld {
			o.Generation, o.StartedAt, o.Trace = 0, time.Time{}, TraceContext{}
		}
		list = append(list, o)
	}
	return list
}

// encoder is a payload.
type encoder interface{ Encode() (Stored, error) }

// encoded returns a payload as a stream stores it.
func encoded(t testing.TB, p encoder) Stored {
	t.Helper()
	s, err := p.Encode()
	testkit.Must(t, err)
	return s
}

// headers is the header of a message.
type headers = map[string][]string

// message returns the message of a payload.
func message(t testing.TB, p encoder) (header headers, data []byte) {
	t.Helper()
	header, data, err := encoded(t, p).Message()
	testkit.Must(t, err)
	return header, data
}

// headerOf returns a header with these attributes, and with those that every event has.
func headerOf(attributes map[string]string) headers {
	header := headers{"ce-specversion": {"1.0"}, "ce-time": {"2026-03-14T15:09:26Z"}, "ce-datacontenttype": {"application/json"}}
	for name, text := range attributes {
		header["ce-"+name] = []string{percentEncode(text)}
	}
	return header
}

// throughTheWire returns a payload as it is read from its message.
func throughTheWire(t testing.TB, p encoder) Stored {
	t.Helper()
	header, data := message(t, p)
	s := NewStored(encoded(t, p).Subject, 1, testTime, header, data)
	testkit.Must(t, s.Err)
	return s
}

// version returns a change of the named Secret at a resourceVersion, with a content of its own.
func version(name, resourceVersion string) Change {
	c := change()
	c.Source.Name, c.UID = name, "uid-"+name
	c.ResourceVersion, c.ChangedAt = resourceVersion, resourceVersion
	c.Keys = map[string]Key{"password": {Fingerprint: sum("5"), ChangedAt: resourceVersion}}
	digits := strings.Repeat("0", 32) + resourceVersion
	c.Fingerprint = "k0a1b2c3d:" + digits[len(digits)-32:]
	return c
}

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	var reject *RejectError
	if !errors.As(err, &reject) || reject.Reason != reason {
		t.Errorf("got %v, want a RejectError with reason %s", err, reason)
	}
}
