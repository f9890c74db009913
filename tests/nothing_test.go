package tests

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
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
			t.Errorf("an event of %s was published for what is no change: %s", source, last.Event())
		}
	}
	r.rollsNothing("a key that nobody reads", func() {
		r.set(events.KindConfigMap, "app", "unread", "two")
		r.unset(events.KindConfigMap, "app", "unread")
		r.set(events.KindConfigMap, "app", "another", "one")
	})
	r.rollsNothing("labels of a workload", func() {
		for _, name := range []string{"db", "app"} {
			r.patchDeployment(name, `{"metadata":{"labels":{"example.com/tier":"web"}}}`)
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
	restart := func() {
		testkit.Must(r, plane.RestartAPIServer(r.Context()))
		if _, err := plane.Revive(); err != nil {
			r.Fatal(err)
		}
	}
	r.rollsNothing("the API server is restarted", func() {
		offset := auditEnd(r)
		// The programs do not watch this object. A watcher that has seen the latest write continues from there.
		plane.Namespace(t)
		restart()
		for account, resource := range map[string]string{"keyturn-watcher": "secrets", "keyturn-actuator": "deployments"} {
			r.eventually("the "+account+" lists again", func(context.Context) bool { return r.lists(account, resource, offset) })
		}
	})
	r.rolls("a source changes before the programs reach the API server again", once("statefulset/still"), func() {
		restart()
		r.set(events.KindSecret, "still", "password", "two")
	})
}

// lists reports whether a service account has listed a resource of the namespace, at once or as a stream, since an offset of
// the audit log.
func (r *rig) lists(account, resource string, offset int64) bool {
	r.Helper()
	entries := auditSince(r, offset)
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
	r.rollsNothing("the consumers are deleted", func() { r.replay(func() {}) })
	r.rollsNothing("the consumers are deleted and the actuator killed", func() {
		r.replay(func() {
			r.actuator.Kill()
			r.startActuator()
		})
	})
}

// replay deletes the consumers by which the actuator follows the changes, does something, and waits until it has new ones that were given all events.
func (r *rig) replay(do func()) {
	r.Helper()
	connection, err := nats.Connect(r.programs.NATSURL(), nats.Timeout(patience), nats.MaxReconnects(-1))
	testkit.Must(r, err)
	defer connection.Close()
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(patience/2))
	testkit.Must(r, err)
	consumers := func(ctx context.Context) ([]*jetstream.ConsumerInfo, error) {
		stream, err := js.Stream(ctx, events.StreamChanges)
		if err != nil {
			return nil, err
		}
		var found []*jetstream.ConsumerInfo
		lister := stream.ListConsumers(ctx)
		for info := range lister.Info() {
			found = append(found, info)
		}
		return found, lister.Err()
	}
	var before []*jetstream.ConsumerInfo
	natstest.Publish(r.T, func() (err error) {
		before, err = consumers(r.Context())
		return err
	})
	if len(before) == 0 {
		r.Fatal("the actuator follows nothing")
	}
	names := map[string]bool{}
	for _, info := range before {
		names[info.Name] = true
		err := natstest.Answered(r.T, func() error { return js.DeleteConsumer(r.Context(), events.StreamChanges, info.Name) })
		// It may be gone by an earlier request that has no answer.
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			r.Fatal(err)
		}
	}
	do()
	r.eventually("the actuator has been given the whole stream again", func(ctx context.Context) bool {
		now, err := consumers(ctx)
		if err != nil {
			return false // NATS itself may not be there yet, which the actuator embeds.
		}
		given := map[string]bool{}
		for _, info := range now {
			given[info.Config.FilterSubject] = given[info.Config.FilterSubject] || !names[info.Name] && info.NumPending == 0
		}
		return !slices.ContainsFunc(events.SourceFilters(r.programs.Cluster()), func(filter string) bool { return !given[filter] })
	})
}
