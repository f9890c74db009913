package tests

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

const wantsPassword = "spec.auth.password=secret/db/password"

// publish publishes that a Secret has changed, as a watcher does, and returns the id of the event.
func (r *projectRig) publish(name, version string, trace events.TraceContext) string {
	r.Helper()
	secret, err := r.kube.CoreV1().Secrets(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	fingerprint := "k0a1b2c3d:" + strings.Repeat(version, 32)
	change := events.Change{
		Cluster: projectCluster, Source: events.Source{Kind: events.KindSecret, Namespace: r.namespace, Name: name}, Verb: events.VerbChanged,
		UID: string(secret.UID), ResourceVersion: secret.ResourceVersion, Fingerprint: fingerprint, Time: metav1.Now().Time, Trace: trace,
		Keys: map[string]events.Key{"password": {Fingerprint: fingerprint, ChangedAt: secret.ResourceVersion}}, Changed: []string{"password"},
		ChangedAt: secret.ResourceVersion,
	}
	var last events.Stored
	err = natstest.Answered(r.T, func() (err error) {
		last, err = r.bus.Last(r.Context(), events.Subject(projectCluster, change.Source))
		return err
	})
	if err != nil && !errors.Is(err, events.ErrNotFound) {
		r.Fatal(err)
	}
	natstest.Publish(r.T, func() error {
		_, err := r.bus.PublishChange(r.Context(), change, last.Seq)
		return err
	})
	return change.ID()
}

func TestAFieldIsKeptEqualToAKeyOfASecret(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	r.resync = "1h"
	r.secret("db", map[string]string{"user": "app", "password": "first-value-0123456789"})
	r.widget("main", wantsPassword+"; spec.auth.user = secret/db/user;")
	r.widget("plain", "")
	before := r.object("plain").GetResourceVersion()
	r.startReady()
	r.awaitField("main", "password", "first-value-0123456789")
	if got := r.field("main", "user"); got != "app" {
		t.Errorf("the other field, which is applied with it: got %q", got)
	}
	told := r.awaitProjection("main", "applied")
	secret, err := r.kube.CoreV1().Secrets(r.namespace).Get(t.Context(), "db", metav1.GetOptions{})
	testkit.Must(t, err)
	want := []events.ProjectedField{
		{Path: "spec.auth.password", Source: "secret/db", Key: "password", ResourceVersion: secret.ResourceVersion},
		{Path: "spec.auth.user", Source: "secret/db", Key: "user", ResourceVersion: secret.ResourceVersion},
	}
	if diff := cmp.Diff(want, told.Fields); diff != "" || told.Cause != "" || told.ResourceVersion != r.object("main").GetResourceVersion() {
		t.Errorf("the event: cause %q, version %s, want none and that of the object; fields (-want +got):\n%s", told.Cause, told.ResourceVersion, diff)
	}

	// An event of the Secret has the new value applied, in its trace.
	trace := events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	r.secret("db", map[string]string{"user": "app", "password": "second-value-0123456789"})
	cause := r.publish("db", "2", trace)
	r.awaitField("main", "password", "second-value-0123456789")
	testkit.Await(t, "the event about it names its cause", func(context.Context) bool {
		list := r.projections("main")
		newest := list[len(list)-1]
		return newest.Cause == cause && newest.Trace.ID() == trace.ID()
	})
	r.nats.JetStream(func(js jetstream.JetStream) {
		testkit.Await(t, "the event of the Secret is acked", func(ctx context.Context) bool {
			consumer, err := js.Consumer(ctx, events.StreamChanges, "projector-"+projectCluster)
			return err == nil && consumer.CachedInfo().NumAckPending == 0 && consumer.CachedInfo().NumPending == 0
		})
	})

	// A resource that comes later has its value at once, and one that gets another annotation, too.
	r.widget("later", wantsPassword)
	r.awaitField("later", "password", "second-value-0123456789")
	r.widget("later", "spec.auth.user=secret/db/user")
	r.awaitField("later", "user", "app")
	r.awaitField("later", "password", "none")
	r.widget("later", "")
	r.awaitField("later", "user", "none")
	r.awaitProjection("later", "released")

	// The status is none of its business.
	settled := r.object("main").GetResourceVersion()
	status := []byte(`{"status":{"seen":"yes"}}`)
	if _, err := r.widgets.Patch(t.Context(), "main", types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	seen := r.object("main").GetResourceVersion()
	if seen == settled {
		t.Fatal("the status was not written")
	}
	reports := len(r.projections("main"))

	// After a restart all is as it was. What changed meanwhile without an event is applied.
	r.stopProjector()
	r.secret("db", map[string]string{"user": "app", "password": "third-value-0123456789"})
	r.widget("plain", "")
	r.startReady()
	r.awaitField("main", "password", "third-value-0123456789")
	testkit.Await(t, "it is reported once more", func(context.Context) bool { return len(r.projections("main")) == reports+1 })
	if got := r.object("plain").GetResourceVersion(); got != before {
		t.Errorf("a resource that wants nothing: got version %s, want %s still", got, before)
	}
	r.leaksNothing("first-value-0123456789", "second-value-0123456789", "third-value-0123456789")
}

func TestASecretWithoutAnEventIsComparedAgain(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	r.configure(strings.Replace(string(exampleOf(t, "projections.yaml", r.namespace)), "    paths:\n", "    paths:\n      - spec.box.token\n", 1))
	r.secret("db", map[string]string{"password": "one"})
	r.widget("main", wantsPassword)
	r.widget("boxed", "spec.box.token=secret/db/password") // in a map that is owned as a whole
	r.startReady()
	written := map[string]string{}
	for _, name := range []string{"main", "boxed"} {
		r.awaitProjection(name, "applied")
		written[name] = r.object(name).GetResourceVersion()
	}
	r.awaitReads(len(r.reads()) + 4)
	for name, version := range written {
		if got, reports := r.object(name).GetResourceVersion(), len(r.projections(name)); got != version || reports != 1 {
			t.Errorf("%s is compared again: got version %s and %d reports, want %s still and one", name, got, reports, version)
		}
	}
	r.secret("db", map[string]string{"password": "two"})
	r.awaitField("main", "password", "two")

	// What goes away stays in the field, and is reported.
	r.secret("db", map[string]string{"user": "app"})
	told := r.awaitProjection("main", "key-missing")
	if told.Verb != events.VerbSkipped || told.Message != "secret/db has no key password." {
		t.Errorf("got %s: %s", told.Verb, told.Message)
	}
	testkit.Must(t, r.kube.CoreV1().Secrets(r.namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	r.awaitProjection("main", "secret-missing")
	if got := r.field("main", "password"); got != "two" {
		t.Errorf("the field of a Secret that is gone: got %q, want what it was", got)
	}
	r.secret("db", map[string]string{"password": "three"})
	r.awaitField("main", "password", "three")
}

func TestAnotherOwnerOfAFieldIsToldBeforeItsValueChangesAndNothingIsForced(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	asSomeone := func(auth string) {
		t.Helper()
		patch := []byte(`{"spec":{"auth":` + auth + `}}`)
		if _, err := r.widgets.Patch(t.Context(), "main", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "someone"}); err != nil {
			t.Fatal(err)
		}
	}
	r.secret("db", map[string]string{"password": "one"})
	r.widget("main", wantsPassword)
	asSomeone(`{"password":"one"}`)
	r.startReady()
	told := r.awaitProjection("main", "shared")
	want := "Another field manager owns spec.auth.password, too: the next value will be a conflict. Have it give the field up."
	if told.Verb != events.VerbFailed || told.Message != want {
		t.Errorf("got %s: %q, want failed: %q", told.Verb, told.Message, want)
	}
	r.awaitReads(len(r.reads()) + 2)
	if got := len(r.projections("main")); got != 1 {
		t.Errorf("got %d reports, want one", got)
	}
	r.secret("db", map[string]string{"password": "two"})
	told = r.awaitProjection("main", "conflict")
	if want := "Another field manager owns spec.auth.password, and nothing is forced."; told.Message != want {
		t.Errorf("got %q, want %q", told.Message, want)
	}
	r.awaitReads(len(r.reads()) + 2)
	if got := r.field("main", "password"); got != "one" || len(r.projections("main")) != 2 {
		t.Errorf("got %q and %d reports, want what was there, and two", got, len(r.projections("main")))
	}
	asSomeone(`{"password":null}`)
	r.awaitField("main", "password", "two")
}
