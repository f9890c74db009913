package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestChangeSurvivesTheWire(t *testing.T) {
	for _, want := range append(allChanges(), countedChange(), leavingOut()) {
		t.Run(string(want.Source.Kind)+" "+string(want.Verb), func(t *testing.T) {
			e := throughTheWire(t, mustEvent(t, want.Event), Subject(want.Cluster, want.Source))
			got, err := ParseChange(e)
			testkit.Must(t, err)
			testkit.WantEqual(t, "difference", want, got)
			if err := matchSubject(Subject(want.Cluster, want.Source), got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatIsNotKnownOfAChangeIsPassedOver(t *testing.T) {
	want := change()
	sent := mustEvent(t, want.Event)
	header, err := HeaderOf(sent)
	testkit.Must(t, err)
	header["ce-region"] = []string{"eu"}
	e, err := FromMsg(want.Subject(), header, []byte(strings.Replace(string(sent.Data()), "{", `{"rotation":{"policy":"monthly"},`, 1)))
	testkit.Must(t, err)
	got, err := ParseChange(e)
	testkit.Must(t, err)
	testkit.WantEqual(t, "difference", want, got)
}

// A reader from before there were buckets takes a change for truncated, of which each key counts as changed. Which keys are listed it does not read.
func TestAReaderThatDoesNotKnowBucketsTakesTheChangeForTruncated(t *testing.T) {
	want := countedChange()
	sent := mustEvent(t, want.Event)
	var former map[string]json.RawMessage
	testkit.Must(t, json.Unmarshal(sent.Data(), &former))
	delete(former, "buckets")
	data, err := json.Marshal(former)
	testkit.Must(t, err)
	header, err := HeaderOf(sent)
	testkit.Must(t, err)
	e, err := FromMsg(want.Subject(), header, data)
	testkit.Must(t, err)
	got, err := ParseChange(e)
	testkit.Must(t, err)
	want.Buckets = nil
	testkit.WantEqual(t, "difference", want, got)
	if last := kept(t, 7, got); !last.Truncated || len(last.Keys) > 0 {
		t.Errorf("truncated: %t, with %d keys", last.Truncated, len(last.Keys))
	}
}

func TestTheCauseOfASecretsChangeSurvivesTheWire(t *testing.T) {
	for data, cause := range map[string]Cause{
		`"cause":{"source":"externalsecret/db","event":"bao/7"}`:   {Source: "externalsecret/db", Event: "bao/7"},
		`"cause":{"source":"externalsecret/db","earlier":"bao/7"}`: {Source: "externalsecret/db", Earlier: "bao/7"},
		`"cause":{"source":"certificate/web","serial":"5f0c","notAfter":"2026-03-14T15:09:26Z"}`: {
			Source: "certificate/web", Serial: "5f0c", NotAfter: testTime.Truncate(time.Second),
		},
	} {
		want := change()
		want.Cause = &cause
		e := throughTheWire(t, mustEvent(t, want.Event), Subject(want.Cluster, want.Source))
		if !strings.Contains(string(e.Data()), data) {
			t.Errorf("the data is %s, want it to have %s", e.Data(), data)
		}
		got, err := ParseChange(e)
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", want, got)
	}
}

func TestWhoWritesASourceSurvivesTheWireInReadableForm(t *testing.T) {
	want := written()
	for _, tt := range []struct {
		name       string
		sent, want []string
	}{
		{"two names", want.Writers, want.Writers},
		{"more than are listed, and an empty one", []string{"", "a", "b", "c", "d", "e"}, []string{"a", "b", "c", "d"}},
		{"a name of several lines, and a long one", []string{"a\nb", strings.Repeat("x", maxWriter+1)}, []string{"a b", strings.Repeat("x", maxWriter)}},
		{"none", []string{""}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent := change()
			sent.Writers = tt.sent
			got, err := ParseChange(throughTheWire(t, mustEvent(t, sent.Event), Subject(sent.Cluster, sent.Source)))
			testkit.Must(t, err)
			testkit.WantEqual(t, "writers", tt.want, got.Writers)
		})
	}
}

// written returns a change that names who writes the source.
func written() Change {
	c := change()
	c.Writers = []string{"external-secrets", "postgres-operator"}
	return c
}

// leavingOut returns a change of which not every key counts.
func leavingOut() Change {
	c := change()
	c.Keys["ttl"] = Key{Fingerprint: sum("5"), ChangedAt: "4711", Ignored: IgnoredByAnnotation}
	c.Keys["user"] = Key{Fingerprint: sum("4"), Since: "4700"}
	c.Changed = []string{"password", "ttl"}
	c.Generated = &Generated{From: sum("6"), Settings: sum("7"), Written: sum("8")}
	c.Problem = `keyturn.dev/ignore-keys: item "a b" is not a data key`
	return c
}

func TestChangeIsNotPublishedWhen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		alter func(*Change)
	}{
		{"the kind is not that of a source", func(c *Change) { c.Source.Kind, c.Verb = KindRollout, VerbStarted }},
		{"the namespace is not legal", func(c *Change) { c.Source.Namespace = "Shop" }},
		{"the uid is missing", func(c *Change) { c.UID = "" }},
		{"the resourceVersion is not a number", func(c *Change) { c.ResourceVersion = "x" }},
		{"the fingerprint is an unkeyed SHA-256", func(c *Change) { c.Fingerprint = strings.Repeat("a", 64) }},
		{"a key's fingerprint is none", func(c *Change) { c.Keys["password"] = Key{Fingerprint: "hunter2"} }},
		{"a key has an illegal name", func(c *Change) { c.Keys["a b"] = Key{} }},
		{"a bucket has a name that no key hashes to", func(c *Change) { c.Buckets = map[string]Key{"A3": {}} }},
		{"a bucket's fingerprint is none", func(c *Change) { c.Buckets = map[string]Key{"a3": {Fingerprint: "hunter2"}} }},
		{"a bucket's changedAt is not a number", func(c *Change) { c.Buckets = map[string]Key{"a3": {ChangedAt: "x"}} }},
		{"a key is ignored for no reason that is a word", func(c *Change) { c.Keys["password"] = Key{Ignored: "hunter 2"} }},
		{"a key counts since what is no number", func(c *Change) { c.Keys["password"] = Key{Since: "hunter2"} }},
		{"what keys are generated from is no fingerprint", func(c *Change) { c.Generated = &Generated{From: sum("1"), Written: "hunter2"} }},
		{"a time has no form in JSON", func(c *Change) { c.WrittenAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := change()
			tt.alter(&c)
			_, err := c.Event()
			wantReason(t, err, ReasonMalformed)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes the data: %v", err)
			}
		})
	}
}

func TestChangeOfAKindIsNotPublishedWhen(t *testing.T) {
	secret, bao := changeOf(KindSecret, VerbChanged), changeOf(KindOpenBao, VerbRotated)
	mounted := changeOf(KindSecretProviderClass, VerbChanged)
	synced := changeOf(KindExternalSecret, VerbSynced)
	for _, tt := range []struct {
		name  string
		of    Change
		alter func(*Change)
	}{
		{"a Secret has the verb of another kind", secret, func(c *Change) { c.Verb = VerbRotated }},
		{"a Secret has a status", secret, func(c *Change) { c.Status = synced.Status }},
		{"an ExternalSecret has no status", synced, func(c *Change) { c.Status = nil }},
		{"a recent fingerprint is none", mounted, func(c *Change) { c.Recent = []string{"hunter2"} }},
		{"there are too many recent fingerprints", mounted, func(c *Change) { c.Recent = slices.Repeat([]string{sum("1")}, MaxRecent+1) }},
		{"a path has the uid of another store", bao, func(c *Change) { c.UID = "vault" }},
		{"a path is none", bao, func(c *Change) { c.Source.Name = "bao/root/secret" }},
		{"a path has a mount that is not escaped", bao, func(c *Change) { c.Source.Name = "bao/root/se%63ret/db" }},
		{"a path is too long", bao, func(c *Change) { c.Source.Name += strings.Repeat("x", maxStoreName) }},
		{"the engine is unknown", bao, func(c *Change) { c.Store = &StoreState{Engine: "pki", Revision: "1"} }},
		{"the lag is too long", bao, func(c *Change) { c.Store = &StoreState{Engine: EngineKV, Revision: "1", LagSeconds: 301} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.of.Event(); err != nil {
				t.Fatalf("the change is refused before it was altered: %v", err)
			}
			c := tt.of
			tt.alter(&c)
			_, err := c.Event()
			wantReason(t, err, ReasonMalformed)
		})
	}
}

func TestParseChangeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		alter  func(*event.Event)
		reason string
	}{
		{"an event without attributes", func(e *event.Event) { e.Context = nil }, ReasonMalformed},
		{"a type of somebody else", func(e *event.Event) { e.SetType("org.example.secret.changed.v1") }, ReasonUnknownType},
		{"a later version", func(e *event.Event) { e.SetType("dev.keyturn.secret.changed.v2") }, ReasonUnknownVersion},
		{"a verb of outcomes", func(e *event.Event) { e.SetType("dev.keyturn.secret.failed.v1") }, ReasonUnknownType},
		{"data that is not JSON", func(e *event.Event) { e.DataEncoded = []byte("hunter2") }, ReasonMalformed},
		{"a time in the data that is none", func(e *event.Event) { e.DataEncoded = []byte(`{"writtenAt":"hunter2"}`) }, ReasonMalformed},
		{"a source of another cluster", func(e *event.Event) { e.SetSource("k8s://other/watcher") }, ReasonMalformed},
		{"a self link of another object", func(e *event.Event) { e.SetSubject("/api/v1/namespaces/shop/secrets/other") }, ReasonMalformed},
		{"an id of another object", func(e *event.Event) { e.SetID("other/4711") }, ReasonMalformed},
		{"a fingerprint without a key", func(e *event.Event) { e.SetExtension("fingerprint", strings.Repeat("a", 32)) }, ReasonMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := mustEvent(t, change().Event)
			tt.alter(&e)
			_, err := ParseChange(e)
			wantReason(t, err, tt.reason)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes the data: %v", err)
			}
		})
	}
}

func TestABrokenTraceDoesNotCostTheChange(t *testing.T) {
	c := change()
	c.Trace = TraceContext{Parent: "00-nonsense", State: "also\nnonsense"}
	e := mustEvent(t, c.Event)
	if _, there := e.Extensions()["traceparent"]; there {
		t.Error("it was written")
	}
	e = mustEvent(t, change().Event)
	e.SetExtension("traceparent", "nonsense")
	got, err := ParseChange(e)
	if err != nil || got.Trace != (TraceContext{}) {
		t.Errorf("got %+v, %v", got.Trace, err)
	}
}

// TestTheLargestChangeFits checks that a change within MaxKeys and MaxKeyNames never exceeds MaxEventSize.
func TestTheLargestChangeFits(t *testing.T) {
	c := change()
	c.Keys, c.Changed = map[string]Key{}, nil
	for i := range MaxKeys {
		name := fmt.Sprintf("%0*d", MaxKeyNames/MaxKeys, i)
		c.Keys[name] = Key{Fingerprint: sum("1"), ChangedAt: "18446744073709551615", Since: "18446744073709551615"}
		c.Changed = append(c.Changed, name)
	}
	c.Truncated, c.Buckets = true, map[string]Key{}
	for i := range 256 {
		c.Buckets[fmt.Sprintf("%02x", i)] = Key{Fingerprint: sum("1"), ChangedAt: "18446744073709551615"}
	}
	if _, err := HeaderOf(mustEvent(t, c.Event)); err != nil {
		t.Error(err)
	}
}

func FuzzParseChange(f *testing.F) {
	for _, c := range append(allChanges(), countedChange()) {
		e := mustEvent(f, c.Event)
		f.Add(e.Type(), e.ID(), e.Source(), e.Subject(), testCluster, testCluster+"/"+c.UID, c.ResourceVersion, c.Fingerprint,
			c.Source.Namespace, c.Source.Name, e.Data())
	}
	f.Fuzz(func(t *testing.T, kind, id, source, subject, cluster, partition, version, fingerprint, namespace, name string, data []byte) {
		header := headers{
			"ce-specversion": {"1.0"}, "ce-type": {kind}, "ce-id": {id}, "ce-source": {source}, "ce-subject": {subject},
			"ce-time": {"2026-03-14T15:09:26Z"}, "ce-datacontenttype": {"application/json"}, "ce-clustername": {cluster},
			"ce-partitionkey": {partition}, "ce-resourceversion": {version}, "ce-fingerprint": {fingerprint},
			"ce-namespace": {namespace}, "ce-name": {name}, "ce-kind": {strings.Split(kind+"...", ".")[2]},
		}
		e, err := FromMsg("s", header, data)
		if err != nil {
			return
		}
		c, err := ParseChange(e)
		if err != nil {
			return
		}
		// What is accepted can be published, its subject can be parsed, and it decodes to the same change.
		address, err := ParseSubject(Subject(c.Cluster, c.Source))
		if err != nil || address.Name != c.Source.Name {
			t.Fatalf("got %+v, %v", address, err)
		}
		again, err := ParseChange(mustEvent(t, c.Event))
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", c, again, cmpopts.EquateEmpty())
	})
}
