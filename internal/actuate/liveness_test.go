package actuate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// TestEverybodyRollsInTheEnd rolls workloads in waves that read one of two sources, or both, with patches that fail, holds, pauses, pods that do not
// stay ready, changes and restarts. When all of that is over, every workload gets the last content.
func TestEverybodyRollsInTheEnd(t *testing.T) {
	seeds := uint64(15)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 31))
			var all []*appsv1.Deployment
			for i := range 5 {
				d := deploymentOf(fmt.Sprintf("app-%d", i), [2]string{"db", "cache"}[random.IntN(2)], inWave(strconv.Itoa(random.IntN(2)), workload.AnnotationBake, "30s"))
				if random.IntN(2) == 0 {
					other := corev1.LocalObjectReference{Name: "cache"}
					d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom,
						corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: other}})
				}
				all = append(all, d)
			}
			b := newBakeBed(t, all...)
			failing := map[string]bool{}
			b.client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
				patch, _ := action.(k8stesting.PatchAction)
				return failing[patch.GetName()], nil, errors.New("connection reset")
			})
			last := map[string]string{}
			version := 200
			rotate := func(source string) {
				version++
				last[source] = strconv.Itoa(version)
				b.changeOf(source, last[source])
			}
			rotate("db")
			rotate("cache")
			for range 40 {
				name := b.names[random.IntN(len(b.names))]
				switch random.IntN(9) {
				case 0:
					rotate([2]string{"db", "cache"}[random.IntN(2)])
				case 1:
					failing[name] = !failing[name]
				case 2:
					b.becomes(name, func(d *appsv1.Deployment) {
						d.Annotations[events.AnnotationHold] = [2]string{"", "wait"}[random.IntN(2)]
					})
				case 3:
					b.becomes(name, func(d *appsv1.Deployment) { d.Spec.Paused = !d.Spec.Paused })
				case 4:
					b.unready(name)
				case 5, 6:
					b.ready(name)
				case 7:
					b.pass(time.Duration(random.IntN(60)) * time.Second)
				case 8:
					b.lead()
					for source, version := range last {
						b.changeOf(source, version)
					}
				}
			}
			clear(failing)
			for _, name := range b.names {
				b.becomes(name, func(d *appsv1.Deployment) { delete(d.Annotations, events.AnnotationHold); d.Spec.Paused = false })
			}
			for range 30 {
				for _, name := range b.names {
					if d := b.get(name); d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != 1 {
						b.ready(name)
					}
				}
				b.pass(31 * time.Second)
			}
			for _, name := range b.names {
				for source, version := range last {
					if w := b.workload(name); w.Reference(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: source}) != nil &&
						w.Rolled["secret/"+source].Version != version {
						t.Errorf("%s has %v, want %s of %s; it waits: %+v", name, w.Rolled, version, source, b.debounce.byKey[w.Key()])
					}
				}
			}
		})
	}
}
