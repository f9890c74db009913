package tests

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	patching "github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// rolled is the workload web of one kind, which a test rolls as the actuator does.
type rolled struct {
	*rig
	kind    patching.Kind
	objects patching.Objects
}

func (r rolled) read() *patching.Workload {
	r.Helper()
	object, err := r.objects.Get(r.Context(), "web")
	testkit.Must(r, err)
	w, ok := patching.Read(r.kind, object, patching.Reading{All: true})
	if !ok {
		r.Fatal("it cannot be read")
	}
	return w
}

// roll rolls it for a change, and waits until the rollout is complete.
func (r rolled) roll(version string) *patching.Workload {
	r.Helper()
	w, source := r.read(), events.Source{Kind: events.KindSecret, Namespace: r.namespace, Name: "db"}
	write := patching.Write{
		Rolls: true, RolledAt: time.Now(), Changes: []patching.Change{{Source: source}},
		Rolled: map[string]patching.RolledFor{source.String(): {Fingerprint: "k:" + version, Version: version, UID: "u"}},
	}
	last := w.NextLast(write)
	write.Last = &last
	patch, err := r.kind.Patch(w, write)
	testkit.Must(r, err)
	if _, err := r.objects.Patch(r.Context(), "web", patch); err != nil {
		r.Fatal(err)
	}
	testkit.Await(r.T, "its rollout is complete", func(context.Context) bool {
		w = r.read()
		return w.AtLast() && w.Progress.State == patching.Complete
	})
	return w
}

// kubectl names no field manager for `rollout undo`, so the API server takes the name of the program. That is no contract.
func TestWhatKubectlUndoesIsToldFromWhatAToolPutsBack(t *testing.T) {
	t.Parallel()
	client, namespace, kubectl := kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t), tool(t, build.Kubectl)
	createEveryKind(t, client, namespace, "web", map[string]string{"keyturn.dev/roll-on": "auto"})
	for _, name := range []string{"deployment", "statefulset", "daemonset"} {
		t.Run(name, func(t *testing.T) {
			kind, _ := patching.BuiltIn().Named(name)
			r := rolled{&rig{T: t, namespace: namespace}, kind, kind.Objects(patching.Clients{Typed: client}, namespace)}
			r.roll("100")
			before := r.roll("110")
			if got := before.Fate(patching.Seen{}); got != patching.RollStands || before.UndoneBy != "" {
				t.Errorf("after a roll: %s, by %q", got, before.UndoneBy)
			}

			r.run(kubectl, "rollout", "undo", name+"/web")
			after := r.read()
			live, start := after.Fate(patching.Seen{Before: before, Ended: true}), after.Fate(patching.Seen{Ended: true})
			if live != patching.RollUndone || start != patching.RollUndone || after.UndoneBy != "kubectl" {
				t.Errorf("after it was undone: %s, for one that has just started %s, by %q", live, start, after.UndoneBy)
			}
			// The annotations of a Deployment are put back, too. Its mark is then that of the roll before.
			if restored := name == "deployment"; (after.Last.Revision == "") != restored {
				t.Errorf("after it was undone its mark is %+v", after.Last)
			}

			before = r.roll("120")
			if before.UndoneBy != "" {
				t.Errorf("after the next roll it counts as undone by %q", before.UndoneBy)
			}
			r.run(kubectl, "patch", name, "web", "--type", "json", "--patch",
				`[{"op": "replace", "path": "/spec/template/metadata/annotations/keyturn.dev~1revision", "value": "put-back"}]`)
			if after := r.read(); after.Fate(patching.Seen{Before: before}) != patching.RollReverted || after.UndoneBy != "" {
				t.Errorf("after a tool put it back: %s, by %q", after.Fate(patching.Seen{Before: before}), after.UndoneBy)
			}
			r.run(kubectl, "rollout", "restart", name+"/web")
			if after := r.read(); after.UndoneBy != "" {
				t.Errorf("after a restart it counts as undone by %q", after.UndoneBy)
			}
		})
	}
}
