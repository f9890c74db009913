package tests

import (
	"maps"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	patching "github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// createEveryKind creates a workload of each kind with the name, which reads the Secret db. None has pods.
func createEveryKind(t *testing.T, client kubernetes.Interface, namespace, name string, annotations map[string]string) {
	t.Helper()
	r := &rig{T: t, client: client, namespace: namespace}
	for _, k := range kinds {
		r.create(workload{kind: k.name, name: name, annotations: annotations, read: readsAll(events.KindSecret, "db")})
	}
}

func TestThePatchOfALeaderThatWasFrozenChangesNothing(t *testing.T) {
	t.Parallel()
	client, namespace := kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)
	auto := map[string]string{"keyturn.dev/roll-on": "auto"}
	edited := maps.Clone(auto)
	edited["keyturn.dev/rolled"] = "<\"&\\ é\u2028~/>"
	for name, annotations := range map[string]map[string]string{"bare": nil, "auto": auto, "edited": edited} {
		createEveryKind(t, client, namespace, name, annotations)
		for _, kind := range patching.BuiltIn() {
			t.Run(name+" "+kind.Name, func(t *testing.T) {
				objects := kind.Objects(patching.Clients{Typed: client}, namespace)
				read := func() *patching.Workload {
					t.Helper()
					object, err := objects.Get(t.Context(), name)
					testkit.Must(t, err)
					w, ok := patching.Read(kind, object, patching.Reading{All: true})
					if !ok {
						t.Fatal("it cannot be read")
					}
					return w
				}
				roll := func(w *patching.Workload, version string, rolls bool) error {
					t.Helper()
					patch, err := kind.Patch(w, patching.Write{Rolls: rolls, Traceparent: "trace-" + version, Rolled: map[string]patching.RolledFor{
						"secret/db": {Fingerprint: "k:1", Version: version, UID: "u"},
					}})
					testkit.Must(t, err)
					_, err = objects.Patch(t.Context(), name, patch)
					return err
				}
				before := read()
				// The controller may annotate the workload at this very moment.
				for err := roll(before, "110", true); err != nil; err = roll(before, "110", true) {
					if !kube.HasChanged(err) || t.Context().Err() != nil {
						t.Fatal(err)
					}
					before = read()
				}
				after := read()
				for _, rolls := range []bool{true, false} {
					if err := roll(before, "100", rolls); !kube.HasChanged(err) || kube.IsDenied(err) {
						t.Errorf("the frozen leader is answered %v; that the workload has changed: %t", err, kube.HasChanged(err))
					}
				}
				if got := read(); got.Rolled["secret/db"].Version != "110" || got.Revision != after.Revision {
					t.Errorf("the record is %v, and the revision %s", got.Rolled, got.Revision)
				}
				if err := roll(read(), "120", true); err != nil {
					t.Errorf("the next change: %v", err)
				}
				if got := read(); got.Rolled["secret/db"].Version != "120" || got.Revision == after.Revision {
					t.Errorf("after the next change the record is %v, and the revision %s", got.Rolled, got.Revision)
				}
			})
		}
	}
}
