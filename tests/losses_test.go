package tests

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// loss is a test of a stream that loses events: a fleet, what it must have rolled, and what it has.
type loss struct {
	*rig
	// volume is where the embedded NATS stores the streams, and copied is a copy of it.
	volume, copied string
	// before is what was written before the first change, and want is how often the Secret of each Deployment was changed since.
	before, want tally
}

// fleetSize is the number of Deployments that change. Each reads a Secret of its own, and one more reads a Secret that never changes.
const fleetSize = 40

// quarter returns a function that says whether a Deployment is in one of these quarters of the fleet, 0 to 3.
func quarter(quarters ...int) func(int) bool {
	return func(i int) bool { return slices.Contains(quarters, i%4) }
}

// change writes new content to the Secrets of a part of the fleet, several at a time.
func (l *loss) change(round string, part func(int) bool) {
	l.Helper()
	const writers = 8
	failed := make([]error, writers)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := w; i < fleetSize; i += writers {
				if part(i) {
					data := map[string]string{"password": round + strconv.Itoa(i)}
					failed[w] = errors.Join(failed[w], programs.SetSecret(l.Context(), l.client, l.namespace, ownSecret(i), data))
				}
			}
		})
	}
	writing.Wait()
	testkit.Must(l, errors.Join(failed...))
	for i := range fleetSize {
		if part(i) {
			l.want["deployment/app-"+strconv.Itoa(i)]++
		}
	}
}

// rolled waits until every change is rolled, and checks that no template has changed more often than that.
func (l *loss) rolled(when string) {
	l.Helper()
	l.eventually("the changes "+when+" are rolled", func(context.Context) bool { return l.seen().since(l.before).covers(l.want) })
	l.streamIsCurrent()
	l.passFence()
	got := l.tally().since(l.before)
	maps.DeleteFunc(got, func(workload string, _ int64) bool { return workload == fenceSecret || workload == fenceConfigMap })
	if diff := cmp.Diff(l.want, got); diff != "" {
		l.Errorf("%s: changes of pod templates (-want +got):\n%s", when, diff)
	}
}

// streamIsCurrent waits until the last event of each Secret is about the Secret as it is.
func (l *loss) streamIsCurrent() {
	l.Helper()
	list, err := l.client.CoreV1().Secrets(l.namespace).List(l.Context(), metav1.ListOptions{})
	testkit.Must(l, err)
	want := make(map[string]string, len(list.Items))
	for i := range list.Items {
		want[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	b := l.connect()
	l.eventually("the stream has the last state of each Secret", func(ctx context.Context) bool {
		stored := make(map[string]string, len(want))
		err := b.State(ctx, events.Origins{Cluster: b.Cluster()}.Filters(events.KindSecret, l.namespace), func(last events.Stored) error {
			change, err := last.Change()
			stored[change.Source.Name] = change.ResourceVersion
			return err
		})
		return err == nil && maps.Equal(stored, want)
	})
}

// copyVolume copies the volume, as a backup does while nothing writes.
func (l *loss) copyVolume() {
	l.Helper()
	l.stop(l.actuator)
	testkit.Must(l, os.CopyFS(l.copied, os.DirFS(l.volume)))
	l.startActuator()
}

// empty drops every event on the stream, while NATS runs.
func (l *loss) empty() {
	l.Helper()
	stream, err := l.jetstream().Stream(l.Context(), events.StreamChanges)
	testkit.Must(l, err)
	testkit.Must(l, stream.Purge(l.Context()))
}

// deleteVolume kills the actuator and deletes its volume.
func (l *loss) deleteVolume() {
	l.Helper()
	l.actuator.Kill()
	testkit.Must(l, os.RemoveAll(l.volume))
}

// restoreVolume kills the actuator and replaces its volume with the copy.
func (l *loss) restoreVolume() {
	l.Helper()
	l.deleteVolume()
	testkit.Must(l, os.CopyFS(l.volume, os.DirFS(l.copied)))
}

// TestNoChangeIsLostWithTheStream changes Secrets before, while and after the stream loses its events. Each change must change one pod
// template once, and nothing else may.
func TestNoChangeIsLostWithTheStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		lose func(*loss)
		// short means that -short is no reason to leave it out.
		short bool
		// ends means that the loss ends the actuator, and with it NATS.
		ends bool
		// restarts means that the watcher is down while the events are lost. It is not otherwise.
		restarts bool
	}{
		{name: "it is emptied", lose: (*loss).empty, short: true},
		{name: "it is emptied and the watcher restarts", lose: (*loss).empty, restarts: true},
		{name: "it is restored from a copy", lose: (*loss).restoreVolume, ends: true},
		{name: "it is restored from a copy and the watcher restarts", lose: (*loss).restoreVolume, ends: true, restarts: true},
		{name: "its volume is deleted", lose: (*loss).deleteVolume, ends: true},
		{name: "its volume is deleted and the watcher restarts", lose: (*loss).deleteVolume, ends: true, restarts: true, short: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !tt.short {
				testkit.Slow(t)
			}
			dir := t.TempDir()
			r := newRig(t, programs.Options{Dir: dir, ActuatorArgs: []string{"--settle", "50ms"}})
			r.fleet(fleetSize, ownSecret)
			r.placeFence()
			r.start()
			l := &loss{rig: r, volume: filepath.Join(dir, "nats"), copied: filepath.Join(dir, "copy"), before: r.tally(), want: tally{}}
			l.change("before", quarter(0, 1))
			l.rolled("before the copy")
			l.copyVolume()
			l.change("since", quarter(1, 2))
			l.rolled("since the copy")
			l.awaitRecords()

			if tt.restarts {
				l.stop(l.watcher)
			}
			tt.lose(l)
			l.change("meanwhile", quarter(0, 3))
			if tt.ends {
				l.startActuator()
			}
			if tt.restarts {
				l.startWatcher()
			}
			l.rolled("meanwhile")
			l.change("after", quarter(1, 3))
			l.rolled("afterwards")
		})
	}
}
