package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

func TestChangeSurvivesTheWire(t *testing.T) {
	for _, want := range allChanges() {
		t.Run(string(want.Source.Kind)+" "+string(want.Verb), func(t *testing.T) {
			e := throughTheWire(t, mustEvent(t, want.Event), Subject(want.Cluster, want.Source))
			got, err := ParseChange(e)
			must(t, err)
			wantEqual(t, "difference", want, got)
			if err := matchSubject(Subject(want.Cluster, want.Source), got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatIsNotKnownOfAChangeIsPassedOver(t *testing.T) {
	want := change()
	sent := mustEvent(t, want.Event)
	header, err := headerOf(sent)
	must(t, err)
	header["ce-region"] = []string{"eu"}
	e, err := FromMsg(want.subject(), header, []byte(strings.Replace(string(sent.Data()), "{", `{"rotation":{"policy":"monthly"},`, 1)))
	must(t, err)
	got, err := ParseChange(e)
	must(t, err)
	wantEqual(t, "difference", want, got)
}

func TestTheCauseOfASecretsChangeSurvivesTheWire(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cause Cause
		data  string
	}{
		{
			"an ExternalSecret that was synced because of a rotation",
			Cause{Source: "externalsecret/db", Event: "bao/root/secret/shop/db/7"},
			`"cause":{"source":"externalsecret/db","event":"bao/root/secret/shop/db/7"}`,
		},
		{
			"an ExternalSecret that was synced because of one before, and not now",
			Cause{Source: "externalsecret/db", Earlier: "bao/root/secret/shop/db/7"},
			`"cause":{"source":"externalsecret/db","earlier":"bao/root/secret/shop/db/7"}`,
		},
		{
			"a Certificate",
			Cause{Source: "certificate/web", Serial: "5f0c", NotAfter: testTime.Truncate(time.Second)},
			`"cause":{"source":"certificate/web","serial":"5f0c","notAfter":"2026-03-14T15:09:26Z"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := change()
			want.Cause = &tt.cause
			e := throughTheWire(t, mustEvent(t, want.Event), Subject(want.Cluster, want.Source))
			if !strings.Contains(string(e.Data()), tt.data) {
				t.Errorf("the data is %s, want it to have %s", e.Data(), tt.data)
			}
			got, err := ParseChange(e)
			must(t, err)
			wantEqual(t, "difference", want, got)
		})
	}
}

func TestChangeIsNotPublishedWhen(t *testing.T) {
	tests := []struct {
		name  string
		alter func(*Change)
	}{
		{"the cluster is missing", func(c *Change) { c.Cluster = "" }},
		{"the kind is not that of a source", func(c *Change) { c.Source.Kind, c.Verb = KindRollout, VerbStarted }},
		{"the verb is of outcomes", func(c *Change) { c.Verb = VerbStarted }},
		{"the namespace is not legal", func(c *Change) { c.Source.Namespace = "Shop" }},
		{"the name is missing", func(c *Change) { c.Source.Name = "" }},
		{"the uid is missing", func(c *Change) { c.UID = "" }},
		{"the uid has a separator", func(c *Change) { c.UID = "a/b" }},
		{"the resourceVersion is not a number", func(c *Change) { c.ResourceVersion = "x" }},
		{"the resourceVersion of its creation is not a number", func(c *Change) { c.CreatedAt = "x" }},
		{"the fingerprint is missing", func(c *Change) { c.Fingerprint = "" }},
		{"the fingerprint is an unkeyed SHA-256", func(c *Change) { c.Fingerprint = strings.Repeat("a", 64) }},
		{"the previous fingerprint is none", func(c *Change) { c.Previous = "hunter2" }},
		{"a key's fingerprint is none", func(c *Change) { c.Keys["password"] = Key{Fingerprint: "hunter2"} }},
		{"a key changed at no version", func(c *Change) { c.Keys["password"] = Key{ChangedAt: "now"} }},
		{"a key has an illegal name", func(c *Change) { c.Keys["a b"] = Key{} }},
		{"it changed at no version", func(c *Change) { c.ChangedAt = "-1" }},
		{"the time is missing", func(c *Change) { c.Time = time.Time{} }},
		{"a time has no form in JSON", func(c *Change) { c.WrittenAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
	}
	for _, tt := range tests {
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
	synced, issued := changeOf(KindExternalSecret, VerbSynced), changeOf(KindCertificate, VerbIssued)
	tests := []struct {
		name  string
		of    Change
		alter func(*Change)
	}{
		{"a Secret has the verb of another kind", secret, func(c *Change) { c.Verb = VerbRotated }},
		{"a Secret has a status", secret, func(c *Change) { c.Status = synced.Status }},
		{"a Secret has the state of a store", secret, func(c *Change) { c.Store = bao.Store }},
		{"a Secret has the name of a path", secret, func(c *Change) { c.Source.Name = "shop/db" }},
		{"a ConfigMap has a cause", changeOf(KindConfigMap, VerbChanged), func(c *Change) { c.Cause = &Cause{Source: "certificate/web"} }},
		{"a Certificate has a cause", issued, func(c *Change) { c.Cause = &Cause{Event: "x"} }},
		{"an ExternalSecret has no status", synced, func(c *Change) { c.Status = nil }},
		{"an ExternalSecret has no namespace", synced, func(c *Change) { c.Source.Namespace = "" }},
		{"a Secret has recent fingerprints", secret, func(c *Change) { c.Recent = []string{sum("1")} }},
		{"a SecretProviderClass has a status", mounted, func(c *Change) { c.Status = synced.Status }},
		{"a recent fingerprint is none", mounted, func(c *Change) { c.Recent = []string{"hunter2"} }},
		{"there are too many recent fingerprints", mounted, func(c *Change) { c.Recent = slices.Repeat([]string{sum("1")}, MaxRecent+1) }},
		{"a path has a namespace of Kubernetes", bao, func(c *Change) { c.Source.Namespace = "shop" }},
		{"a path has a status", bao, func(c *Change) { c.Status = synced.Status }},
		{"a path has a cause", bao, func(c *Change) { c.Cause = &Cause{Event: "x"} }},
		{"a path has no state", bao, func(c *Change) { c.Store = nil }},
		{"a path has the uid of another store", bao, func(c *Change) { c.UID = "vault" }},
		{"a path is none", bao, func(c *Change) { c.Source.Name = "bao/root/secret" }},
		{"a path has a mount that is not escaped", bao, func(c *Change) { c.Source.Name = "bao/root/se%63ret/db" }},
		{"a path has a control character", bao, func(c *Change) { c.Source.Name = "bao/root/secret/a\nb" }},
		{"a path ends with a slash", bao, func(c *Change) { c.Source.Name += "/" }},
		{"a path is of a store that is no label", bao, func(c *Change) { c.Source.Name = "B/root/secret/db" }},
		{"a path is too long", bao, func(c *Change) { c.Source.Name += strings.Repeat("x", maxStoreName) }},
		{"the engine is unknown", bao, func(c *Change) { c.Store = &StoreState{Engine: "pki", Revision: "1"} }},
		{"the version is negative", bao, func(c *Change) { c.Store = &StoreState{Engine: EngineKV, Revision: "1", Version: -1} }},
		{"the revision is missing", bao, func(c *Change) { c.Store = &StoreState{Engine: EngineKV} }},
		{"the revision has a control character", bao, func(c *Change) { c.Store = &StoreState{Engine: EngineKV, Revision: "\x00"} }},
	}
	for _, tt := range tests {
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
	tests := []struct {
		name   string
		alter  func(*event.Event)
		reason string
	}{
		{"an event without attributes", func(e *event.Event) { e.Context = nil }, ReasonMalformed},
		{"a type of somebody else", func(e *event.Event) { e.SetType("org.example.secret.changed.v1") }, ReasonUnknownType},
		{"a type with too few words", func(e *event.Event) { e.SetType("dev.keyturn.secret.v1") }, ReasonUnknownType},
		{"a later version", func(e *event.Event) { e.SetType("dev.keyturn.secret.changed.v2") }, ReasonUnknownVersion},
		{"an unknown kind", func(e *event.Event) { e.SetType("dev.keyturn.pod.changed.v1") }, ReasonUnknownType},
		{"a verb of outcomes", func(e *event.Event) { e.SetType("dev.keyturn.secret.failed.v1") }, ReasonUnknownType},
		{"another media type", func(e *event.Event) { e.SetDataContentType("text/plain") }, ReasonMalformed},
		{"data that is not JSON", func(e *event.Event) { e.DataEncoded = []byte("hunter2") }, ReasonMalformed},
		{"data of a wrong type", func(e *event.Event) { e.DataEncoded = []byte(`{"previous":{"hunter2":1}}`) }, ReasonMalformed},
		{"a time in the data that is none", func(e *event.Event) { e.DataEncoded = []byte(`{"writtenAt":"hunter2"}`) }, ReasonMalformed},
		{"two JSON values", func(e *event.Event) { e.DataEncoded = []byte(`{}{}`) }, ReasonMalformed},
		{"no data", func(e *event.Event) { e.DataEncoded = nil }, ReasonMalformed},
		{"a source of the actuator", func(e *event.Event) { e.SetSource("k8s://prod-eu/actuator") }, ReasonMalformed},
		{"a source of another cluster", func(e *event.Event) { e.SetSource("k8s://other/watcher") }, ReasonMalformed},
		{"a kind that is not that of the type", func(e *event.Event) { e.SetExtension("kind", "configmap") }, ReasonMalformed},
		{"a self link of another object", func(e *event.Event) { e.SetSubject("/api/v1/namespaces/shop/secrets/other") }, ReasonMalformed},
		{"a partitionkey of another cluster", func(e *event.Event) { e.SetExtension("partitionkey", "other/"+testUID) }, ReasonMalformed},
		{"an id of another object", func(e *event.Event) { e.SetID("other/4711") }, ReasonMalformed},
		{"a resourceversion that is not in the id", func(e *event.Event) { e.SetExtension("resourceversion", "4712") }, ReasonMalformed},
		{"a fingerprint without a key", func(e *event.Event) { e.SetExtension("fingerprint", strings.Repeat("a", 32)) }, ReasonMalformed},
		{"a missing name", func(e *event.Event) { e.SetExtension("name", nil) }, ReasonMalformed},
	}
	for _, tt := range tests {
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
		c.Keys[name] = Key{Fingerprint: sum("1"), ChangedAt: "18446744073709551615"}
		c.Changed = append(c.Changed, name)
	}
	if _, err := headerOf(mustEvent(t, c.Event)); err != nil {
		t.Error(err)
	}
}

func FuzzParseChange(f *testing.F) {
	for _, c := range allChanges() {
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
		must(t, err)
		wantEqual(t, "difference", c, again)
	})
}
