package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestChangeSurvivesTheWire(t *testing.T) {
	for _, want := range append(allChanges(), countedChange(), leavingOut()) {
		t.Run(string(want.Source.Kind)+" "+string(want.Verb), func(t *testing.T) {
			got, err := throughTheWire(t, want).Change()
			testkit.Must(t, err)
			testkit.WantEqual(t, "difference", want, got)
		})
	}
}

func TestWhatIsNotKnownOfAChangeIsPassedOver(t *testing.T) {
	want := change()
	header, data := message(t, want)
	header["ce-region"] = []string{"eu"}
	data = []byte(strings.Replace(string(data), "{", `{"rotation":{"policy":"monthly"},`, 1))
	got, err := NewStored(want.Subject(), 1, testTime, header, data).Change()
	testkit.Must(t, err)
	testkit.WantEqual(t, "difference", want, got)
}

// A reader from before there were buckets takes a change for truncated, of which each key counts as changed. Which keys are listed it does not read.
func TestAReaderThatDoesNotKnowBucketsTakesTheChangeForTruncated(t *testing.T) {
	want := countedChange()
	header, data := message(t, want)
	var former map[string]json.RawMessage
	testkit.Must(t, json.Unmarshal(data, &former))
	delete(former, "buckets")
	data, err := json.Marshal(former)
	testkit.Must(t, err)
	got, err := NewStored(want.Subject(), 1, testTime, header, data).Change()
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
		if _, sent := message(t, want); !strings.Contains(string(sent), data) {
			t.Errorf("the data is %s, want it to have %s", sent, data)
		}
		got, err := throughTheWire(t, want).Change()
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
			got, err := throughTheWire(t, sent).Change()
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
			_, err := c.Encode()
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
			if _, err := tt.of.Encode(); err != nil {
				t.Fatalf("the change is refused before it was altered: %v", err)
			}
			c := tt.of
			tt.alter(&c)
			_, err := c.Encode()
			wantReason(t, err, ReasonMalformed)
		})
	}
}

func TestNoChangeIsReadFrom(t *testing.T) {
	for _, tt := range []struct{ name, attribute, value, data, reason string }{
		{name: "a type of somebody else", attribute: "type", value: "org.example.secret.changed.v1", reason: ReasonUnknownType},
		{name: "a later version", attribute: "type", value: "dev.keyturn.secret.changed.v2", reason: ReasonUnknownVersion},
		{name: "a verb of outcomes", attribute: "type", value: "dev.keyturn.secret.failed.v1", reason: ReasonUnknownType},
		{name: "data that is not JSON", data: "hunter2", reason: ReasonMalformed},
		{name: "a time in the data that is none", data: `{"writtenAt":"hunter2"}`, reason: ReasonMalformed},
		{name: "a source of another cluster", attribute: "source", value: "k8s://other/watcher", reason: ReasonMalformed},
		{name: "a self link of another object", attribute: "subject", value: "/api/v1/namespaces/shop/secrets/other", reason: ReasonMalformed},
		{name: "an id of another object", attribute: "id", value: "other/4711", reason: ReasonMalformed},
		{name: "a fingerprint without a key", attribute: "fingerprint", value: strings.Repeat("a", 32), reason: ReasonMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, data := message(t, change())
			if tt.attribute != "" {
				header["ce-"+tt.attribute] = []string{tt.value}
			}
			if tt.data != "" {
				data = []byte(tt.data)
			}
			_, err := NewStored(change().Subject(), 1, testTime, header, data).Change()
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
	header, data := message(t, c)
	if _, there := header["ce-traceparent"]; there {
		t.Error("it was written")
	}
	header["ce-traceparent"] = []string{"nonsense"}
	got, err := NewStored(c.Subject(), 1, testTime, header, data).Change()
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
	if _, _, err := encoded(t, c).Message(); err != nil {
		t.Error(err)
	}
}

func FuzzChange(f *testing.F) {
	for _, c := range append(allChanges(), countedChange()) {
		e := encoded(f, c).Event()
		f.Add(e.Type(), e.ID(), e.Source(), e.Subject(), testCluster, testCluster+"/"+c.UID, c.ResourceVersion, c.Fingerprint,
			c.Source.Namespace, c.Source.Name, e.Data())
	}
	f.Fuzz(func(t *testing.T, of, id, source, link, cluster, partition, version, fingerprint, namespace, name string, data []byte) {
		kind := strings.Split(of+"...", ".")[2]
		header := headerOf(map[string]string{
			"type": of, "id": id, "source": source, "subject": link, "clustername": cluster, "partitionkey": partition, "kind": kind,
			"resourceversion": version, "fingerprint": fingerprint, "namespace": namespace, "name": name,
		})
		subject := Subject(cluster, Source{Kind: Kind(kind), Namespace: namespace, Name: name})
		c, err := NewStored(subject, 1, testTime, header, data).Change()
		if err != nil {
			return
		}
		// What is accepted can be published, its subject can be parsed, and it decodes to the same change.
		address, err := ParseSubject(Subject(c.Cluster, c.Source))
		if err != nil || address.Name != c.Source.Name {
			t.Fatalf("got %+v, %v", address, err)
		}
		again, err := encoded(t, c).Change()
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", c, again, cmpopts.EquateEmpty())
	})
}
