package tests

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// tally is how often the pod template of each workload in a namespace was written, by "deployment/web", or the growth of it. A record that
// needs no rollout writes none.
type tally map[string]int64

// once is the tally of workloads that were each rolled once.
func once(workloads ...string) tally {
	want := tally{}
	for _, workload := range workloads {
		want[workload] = 1
	}
	return want
}

func (r *rig) tally() tally {
	r.Helper()
	writes, err := r.templates.Writes(r.Context())
	testkit.Must(r, err)
	return writes
}

// seen is tally as far as the watch has come, for what is waited for: it asks the API server nothing.
func (r *rig) seen() tally { return r.templates.Seen() }

// workload returns the metadata of a workload, named as in a tally.
func (r *rig) workload(workload string) *metav1.PartialObjectMetadata {
	r.Helper()
	kindOf, name, _ := strings.Cut(workload, "/")
	place := slices.IndexFunc(kinds, func(k kind) bool { return k.name == kindOf })
	resource := metadata.NewForConfigOrDie(plane.Config()).Resource(kinds[place].resource)
	object, err := resource.Namespace(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return object
}

// since returns which workloads were written since an earlier tally, and how often.
func (t tally) since(before tally) tally {
	grown := tally{}
	for workload, writes := range t {
		if rolls := writes - before[workload]; rolls != 0 {
			grown[workload] = rolls
		}
	}
	return grown
}

// deployments returns the part of a tally that is about Deployments, by their names.
func (t tally) deployments() map[string]int64 {
	some := make(map[string]int64)
	for workload, writes := range t {
		if name, ok := strings.CutPrefix(workload, "deployment/"); ok {
			some[name] = writes
		}
	}
	return some
}

func (t tally) covers(want tally) bool {
	for workload, rolls := range want {
		if t[workload] < rolls {
			return false
		}
	}
	return true
}

// rolls does something and waits until the workloads have rolled that it is to roll. Then it waits for the fence, and
// shows that they have not rolled more often, and that nothing else has.
func (r *rig) rolls(what string, want tally, do func()) {
	r.Helper()
	before := r.tally()
	do()
	ctx, stop := running.WithTimeout(r.Context(), patience)
	defer stop()
	// That time runs out is seen in the tally.
	_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return r.seen().since(before).covers(want), nil
	})
	r.passFence()
	got := r.tally().since(before)
	delete(got, fenceSecret)
	delete(got, fenceConfigMap)
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("%s: rollouts (-want +got):\n%s", what, diff)
	}
}

// rollsNothing is rolls for a change that must roll nothing.
func (r *rig) rollsNothing(what string, do func()) {
	r.Helper()
	r.rolls(what, tally{}, do)
}

// The fence consists of two Deployments. One reads a Secret, the other a ConfigMap.
const (
	fenceSecret    = "deployment/fence-secret"
	fenceConfigMap = "deployment/fence-configmap"
)

// placeFence makes the fence, which may be passed any number of times. Call it before the programs start.
func (r *rig) placeFence() {
	r.Helper()
	for _, kind := range []events.Kind{events.KindSecret, events.KindConfigMap} {
		name := "fence-" + string(kind)
		r.write(kind, name, map[string]string{"round": "none"})
		r.create(workload{
			kind: "deployment", name: name, on: "auto", annotations: map[string]string{"keyturn.dev/max-rolls-per-hour": "0"}, read: readsAll(kind, name),
		})
	}
}

// passFence waits until all earlier changes have had their effect. Changes of one kind are seen in order and decided in the order of the stream: once
// a new change has gone all the way, until the end of its rollouts is told, all changes before it have had theirs. But the watcher publishes
// concurrently, so close changes can swap places. Therefore passFence makes a first change that only has to be published. What comes after it is of
// a later second, as far as the API server tells times.
func (r *rig) passFence() {
	r.Helper()
	r.publishFence()
	for source, version := range r.changeFence() {
		r.eventually(source.String()+" rolls its Deployment", func(context.Context) bool {
			return strings.Contains(r.deployment(source.Name).Annotations["keyturn.dev/rolled"], "@"+version+"/")
		})
		r.awaitEndOfLastRoll(source.Name)
	}
	r.awaitLaterSecond()
}

// awaitEndOfLastRoll waits until the end of the last roll of a Deployment is told.
func (r *rig) awaitEndOfLastRoll(name string) {
	r.Helper()
	revision := programs.Revision(&r.deployment(name).Spec.Template)
	r.eventually("the last rollout of "+name+" is complete", func(context.Context) bool {
		return slices.ContainsFunc(r.outcomes(), func(o events.Outcome) bool {
			return o.Workload.Name == name && o.Verb == events.VerbCompleted && o.Revision == revision
		})
	})
}

// publishFence changes the sources of the fence, and waits until that is published.
func (r *rig) publishFence() {
	r.Helper()
	b := r.connect()
	for source, version := range r.changeFence() {
		r.eventually("the event of "+source.String()+" is published", func(ctx context.Context) bool {
			last, err := b.Last(ctx, events.Subject(b.Cluster(), source))
			if err != nil {
				return false // NATS comes back with the actuator that embeds it
			}
			change, err := last.Change()
			return err == nil && change.ResourceVersion == version
		})
	}
}

// changeFence changes the sources of the fence and returns them with the resourceVersions that they have then.
func (r *rig) changeFence() map[events.Source]string {
	r.Helper()
	versions := map[events.Source]string{}
	for _, kind := range []events.Kind{events.KindSecret, events.KindConfigMap} {
		source := events.Source{Kind: kind, Namespace: r.namespace, Name: "fence-" + string(kind)}
		r.set(kind, source.Name, "round", strconv.FormatInt(time.Now().UnixNano(), 10))
		versions[source] = r.source(kind, source.Name).GetResourceVersion()
	}
	return versions
}
