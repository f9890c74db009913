package tests

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// settledRig returns a rig with workloads of each kind that have rolled for a change of their sources, and one workload whose
// source has never changed.
func settledRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	r.write(events.KindSecret, "db", map[string]string{"password": "one", "user": "web"})
	r.write(events.KindConfigMap, "app", map[string]string{"color": "red", "unread": "one"})
	r.write(events.KindSecret, "still", map[string]string{"password": "one"})
	changed := tally{}
	for _, k := range kinds {
		secret := workload{kind: k.name, name: "db", on: "auto", read: readsAll(events.KindSecret, "db")}
		configMap := workload{kind: k.name, name: "app", on: "auto", read: readsKey(events.KindConfigMap, "app", "color")}
		r.create(secret)
		r.create(configMap)
		changed[secret.String()], changed[configMap.String()] = 1, 1
	}
	r.create(workload{name: "still", on: "auto", read: readsAll(events.KindSecret, "still")})
	r.placeFence()
	r.start()
	r.rolls("the sources change", changed, func() {
		r.set(events.KindSecret, "db", "password", "two")
		r.set(events.KindConfigMap, "app", "color", "blue")
	})
	return r
}

func TestWhatIsNoChangeRollsNothing(t *testing.T) {
	t.Parallel()
	r := settledRig(t)
	sources := []events.Source{
		{Kind: events.KindSecret, Name: "db"}, {Kind: events.KindSecret, Name: "still"}, {Kind: events.KindConfigMap, Name: "app"},
	}
	sequences := make([]uint64, len(sources))
	for i, source := range sources {
		sequences[i] = r.lastEvent(source).Seq
	}
	r.rollsNothing("annotations and labels of the sources", func() {
		r.annotate(events.KindSecret, "db", "example.com/note", "hello")
		r.label(events.KindSecret, "still", "example.com/tier", "data")
		r.label(events.KindConfigMap, "app", "example.com/tier", "web")
	})
	r.rollsNothing("the same content is applied again", func() {
		r.write(events.KindSecret, "db", map[string]string{"user": "web", "password": "two"})
		r.write(events.KindConfigMap, "app", map[string]string{"unread": "one", "color": "blue"})
		r.write(events.KindSecret, "still", map[string]string{"password": "one"})
	})
	r.rollsNothing("a key moves from data to binaryData", func() {
		r.patch(events.KindConfigMap, "app", map[string]any{
			"data": map[string]any{"color": nil}, "binaryData": map[string]any{"color": []byte("blue")},
		})
	})
	for i, source := range sources {
		if last := r.lastEvent(source); last.Seq != sequences[i] {
			t.Errorf("an event of %s was published for what is no change: %s", source, last.Event)
		}
	}
	r.rollsNothing("a key that nobody reads", func() {
		r.set(events.KindConfigMap, "app", "unread", "two")
		r.unset(events.KindConfigMap, "app", "unread")
		r.set(events.KindConfigMap, "app", "another", "one")
	})
	r.rollsNothing("labels of a workload", func() {
		body := []byte(`{"metadata":{"labels":{"example.com/tier":"web"}}}`)
		for _, name := range []string{"db", "app"} {
			_, err := r.client.AppsV1().Deployments(r.namespace).Patch(r.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
			if err != nil {
				r.Fatal(err)
			}
		}
	})
}

func TestARestartOfAProgramRollsNothing(t *testing.T) {
	t.Parallel()
	r := settledRig(t)
	ends := []struct {
		name string
		end  func(*programs.Program)
	}{
		{"stopped", func(program *programs.Program) {
			if err := program.Stop(20 * time.Second); err != nil {
				r.Errorf("stopping the %s: %v", program.Name(), err)
			}
		}},
		{"killed", func(program *programs.Program) { program.Kill() }},
	}
	for _, e := range ends {
		r.rollsNothing("the watcher is "+e.name, func() {
			e.end(r.watcher)
			r.startWatcher()
		})
		r.rollsNothing("the actuator is "+e.name, func() {
			e.end(r.actuator)
			r.startActuator()
		})
		r.rollsNothing("both are "+e.name, func() {
			e.end(r.watcher)
			e.end(r.actuator)
			r.start()
		})
	}
}

// It is not parallel: it restarts the API server that the tests share.
func TestARelistOfTheInformersRollsNothing(t *testing.T) {
	r := settledRig(t)
	r.rollsNothing("the API server is restarted", func() {
		offset, err := plane.AuditEnd()
		if err != nil {
			r.Fatal(err)
		}
		// The programs do not watch this object. A watcher that has seen the latest write continues from there.
		plane.Namespace(t)
		if err := plane.RestartAPIServer(r.Context()); err != nil {
			r.Fatal(err)
		}
		for account, resource := range map[string]string{"keyturn-watcher": "secrets", "keyturn-actuator": "deployments"} {
			r.eventually("the "+account+" lists again", func(context.Context) bool { return r.lists(account, resource, offset) })
		}
	})
}

// lists reports whether a service account has listed a resource of the namespace, at once or as a stream, since an offset of
// the audit log.
func (r *rig) lists(account, resource string, offset int64) bool {
	r.Helper()
	entries, _, err := plane.AuditSince(offset)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range testbed.Requests(entries, testbed.ServiceAccountUser(programs.SystemNamespace, account)) {
		if e.Resource == resource && e.Namespace == r.namespace && e.Code == http.StatusOK &&
			(e.Verb == "list" || strings.Contains(e.URI, "sendInitialEvents=true")) {
			return true
		}
	}
	return false
}

func TestAReplayOfTheStreamRollsNothing(t *testing.T) {
	t.Parallel()
	r := settledRig(t)
	r.create(workload{name: "late", on: "auto", read: readsAll(events.KindSecret, "db")})
	r.rollsNothing("the consumer is deleted", func() { r.replay(func() {}) })
	r.rollsNothing("the consumer is deleted and the actuator killed", func() {
		r.replay(func() {
			r.actuator.Kill()
			r.startActuator()
		})
	})
}

// replay deletes the actuator's consumer, does something, and waits until there is a new one that was given all events.
func (r *rig) replay(do func()) {
	r.Helper()
	connection, err := nats.Connect(r.programs.NATSURL(), nats.Timeout(patience), nats.MaxReconnects(-1))
	if err != nil {
		r.Fatal(err)
	}
	defer connection.Close()
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(patience/2))
	if err != nil {
		r.Fatal(err)
	}
	const durable = "actuator-demo"
	var before jetstream.Consumer
	natstest.Publish(r.T, func() (err error) {
		before, err = js.Consumer(r.Context(), events.StreamChanges, durable)
		return err
	})
	err = natstest.Answered(r.T, func() error { return js.DeleteConsumer(r.Context(), events.StreamChanges, durable) })
	// It may be gone by an earlier request that has no answer.
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		r.Fatal(err)
	}
	do()
	r.eventually("a new consumer has been given the whole stream", func(ctx context.Context) bool {
		now, err := js.Consumer(ctx, events.StreamChanges, durable)
		if err != nil {
			return false // it is not there yet, or NATS itself is not, which the actuator embeds
		}
		info := now.CachedInfo()
		return info.Created.After(before.CachedInfo().Created) && info.Delivered.Consumer > 0 && info.NumPending == 0 && info.NumAckPending == 0
	})
}
