package tests

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// reload rolls a Deployment for a source as Reloader does.
func (r *rig) reload(name, strategy string, kind events.Kind, source string, data map[string]string) {
	r.Helper()
	roll := programs.Reload{
		Namespace: r.namespace, Workload: "deployment/" + name, Kind: strings.ToUpper(string(kind)), Name: source, Data: data, Strategy: strategy,
	}
	if err := roll.Send(r.Context(), r.client); err != nil {
		r.Fatal(err)
	}
}

// scale sets the replicas of a Deployment, and waits until its controller has observed that.
func (r *rig) scale(name string, replicas int) {
	r.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	scaled, err := r.client.AppsV1().Deployments(r.namespace).Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.eventually(name+" has as many pods", func(context.Context) bool {
		status := r.deployment(name).Status
		return status.ObservedGeneration >= scaled.Generation && int(status.Replicas) == replicas
	})
}

// compared returns the rows of compare without their reasons, and its last line.
func (r *rig) compared() []string {
	r.Helper()
	var rows []string
	for line := range strings.Lines(r.ask("compare", "-n", r.namespace)) {
		fields := regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), 5)
		switch {
		case len(fields) == 5 && fields[1] == r.namespace:
			rows = append(rows, fmt.Sprintf("%s %s %s", fields[0], fields[2], fields[3]))
		case strings.HasPrefix(line, "both: "):
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return slices.DeleteFunc(rows, func(row string) bool { return strings.Contains(row, "fence-") })
}

func TestADryRunBesideReloaderIsComparedWithItAndEndsWithoutARoll(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string][]string{
		"env-vars": {
			"keyturn only deployment/missed secret/db", "reloader only deployment/none secret/db", "unclear cronjob/web secret/db",
			"both deployment/two configmap/app", "both deployment/two secret/db", "both deployment/web secret/db",
			"both: 3, keyturn only: 1, reloader only: 1, unclear: 1",
		},
		// The marker names the last source only.
		"annotations": {
			"keyturn only deployment/missed secret/db", "reloader only deployment/none secret/db", "unclear cronjob/web secret/db",
			"unclear deployment/two secret/db", "both deployment/two configmap/app", "both deployment/web secret/db",
			"both: 2, keyturn only: 1, reloader only: 1, unclear: 2",
		},
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, programs.Options{ActuatorArgs: []string{
				"--settle", "50ms", "--reloader", "--reloader-strategy", strategy, "--dry-run",
			}})
			r.write(events.KindSecret, "db", map[string]string{"a": "one"})
			r.write(events.KindConfigMap, "app", map[string]string{"a": "one"})
			db := readsAll(events.KindSecret, "db")
			// Its pods find no node, so they are being replaced when it is decided about.
			r.create(workload{kind: "deployment", name: "web", annotations: reloader("auto", "true"), read: both(db, func(spec *corev1.PodSpec) {
				spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
			})})
			r.scale("web", 1)
			r.create(workload{kind: "deployment", name: "missed", annotations: reloader("auto", "true"), read: db})
			r.create(workload{kind: "deployment", name: "two", annotations: reloader("auto", "true"), read: both(db, readsAll(events.KindConfigMap, "app"))})
			r.create(workload{kind: "deployment", name: "none", annotations: reloader("auto", "true"), on: "none", read: db})
			r.create(workload{kind: "cronjob", name: "web", annotations: reloader("auto", "true"), read: db})
			r.placeFence()
			r.start()
			changed := map[string]string{"a": "two"}
			r.set(events.KindSecret, "db", "a", "two")
			for _, name := range []string{"web", "two", "none"} {
				r.reload(name, strategy, events.KindSecret, "db", changed)
			}
			// Of two rolls in a second, the marker tells for sure only what the second was for, and the other is repeated.
			r.awaitLaterSecond()
			r.set(events.KindConfigMap, "app", "a", "two")
			r.reload("two", strategy, events.KindConfigMap, "app", changed)
			var got []string
			r.eventually("all is decided and compared", func(context.Context) bool {
				got = r.compared()
				return slices.Equal(got, want)
			}, func() string { return "compared (-want +got):\n" + cmp.Diff(want, got) })
			r.stop(r.actuator)
			r.scale("web", 0)
			r.rollsNothing("the dry run ends", func() { r.startActuator("--dry-run=false") })
		})
	}
}
