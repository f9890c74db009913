package tests

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

const reloadedFrom = "reloader.stakater.com/last-reloaded-from"

// podTemplate returns the pod template of a workload, named as in a tally.
func (r *rig) podTemplate(workload string) *corev1.PodTemplateSpec {
	r.Helper()
	kindOf, name, _ := strings.Cut(workload, "/")
	place := slices.IndexFunc(kinds, func(k kind) bool { return k.name == kindOf })
	object, err := dynamic.NewForConfigOrDie(plane.Config()).Resource(kinds[place].resource).Namespace(r.namespace).
		Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	path := []string{"spec", "template"}
	if kindOf == "cronjob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	content, _, err := unstructured.NestedMap(object.Object, path...)
	if err != nil {
		r.Fatal(err)
	}
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, template); err != nil {
		r.Fatal(err)
	}
	return template
}

// reloaderVariables are the variables of a pod template that are called as those of Reloader, as "<container>/<name>".
func reloaderVariables(template *corev1.PodTemplateSpec) map[string]string {
	found := make(map[string]string)
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		for _, v := range c.Env {
			if strings.HasPrefix(v.Name, "STAKATER_") {
				found[c.Name+"/"+v.Name] = v.Value
			}
		}
	}
	return found
}

func TestARollLeavesWhatReloaderLeavesWithEachStrategy(t *testing.T) {
	t.Parallel()
	t.Run("annotations", func(t *testing.T) {
		t.Parallel()
		r := newStrategyRig(t, "annotations")
		marked := r.placeMarked()
		r.placeKeyed()
		r.step("what Reloader left rolls nothing and is replaced", func(r *rig) { r.replacesWhatReloaderLeft("annotations") })
		r.step("the marker names the last source", func(r *rig) { r.marksTheLastSource(marked) })
		r.step("a revert is seen beside the marker", (*rig).seesARevertOfWhatReloaderWrites)
		r.step("other keys of annotations roll nothing, and then count", (*rig).countsOtherKeys)
	})
	t.Run("env-vars", func(t *testing.T) {
		t.Parallel()
		r := newStrategyRig(t, "env-vars")
		read := r.placeReferences()
		r.step("what Reloader left rolls nothing and is replaced", func(r *rig) { r.replacesWhatReloaderLeft("env-vars") })
		r.step("the variables are in the container that reads the source", func(r *rig) { r.setsVariablesOfTheReader(read) })
		r.step("a revert is seen beside the variables", (*rig).seesARevertOfWhatReloaderWrites)
	})
}

// newStrategyRig is a rig for an actuator with a strategy of Reloader. The first step starts the programs.
func newStrategyRig(t *testing.T, strategy string) *rig {
	t.Helper()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--reloader", "--reloader-strategy", strategy}})
	r.placeFence()
	r.secret("owned", map[string]string{"password": "one"})
	r.deployOwned("owned", "owned")
	return r
}

// placeReferences creates a workload of each kind for each form of reference, and returns them.
func (r *rig) placeReferences() tally {
	r.Helper()
	all := tally{}
	for _, form := range references {
		source := slug(form.name)
		r.write(form.kind, source, map[string]string{"read": "one", "other": "one"})
		for _, k := range kinds {
			w := workload{kind: k.name, name: source, on: "auto", read: form.read(form.kind, source)}
			r.create(w)
			all[w.String()] = 1
		}
	}
	return all
}

// setsVariablesOfTheReader is for the workloads of placeReferences.
func (r *rig) setsVariablesOfTheReader(all tally) {
	r.Helper()
	earlier := make(map[string]string)
	for _, value := range []string{"two", "three"} {
		r.rolls("the sources change", all, func() {
			for _, form := range references {
				r.set(form.kind, slug(form.name), "read", value)
			}
		})
		for _, form := range references {
			in := "main"
			if form.name == "variables of a second container" {
				in = "second"
			}
			name := in + "/STAKATER_" + strings.ToUpper(strings.ReplaceAll(slug(form.name), "-", "_")+"_"+string(form.kind))
			for _, k := range kinds {
				w := k.name + "/" + slug(form.name)
				template := r.podTemplate(w)
				found := reloaderVariables(template)
				if len(found) != 1 || len(found[name]) != 40 || found[name] == earlier[w] {
					r.Errorf("%s: the variables are %v, want %s with another value than %s", w, found, name, earlier[w])
				}
				if template.Annotations[reloadedFrom] != "" || programs.Revision(template) == "" {
					r.Errorf("%s: the annotations are %v", w, template.Annotations)
				}
				earlier[w] = found[name]
			}
		}
	}
}

// placeMarked creates a workload of each kind that reads a Secret in one container and a ConfigMap in another, and returns them. They are on hold.
func (r *rig) placeMarked() tally {
	r.Helper()
	r.write(events.KindSecret, "cache", map[string]string{"a": "one"})
	r.write(events.KindConfigMap, "app", map[string]string{"a": "one"})
	all := tally{}
	for _, k := range kinds {
		annotations := merge(reloader("auto", "true"), map[string]string{"keyturn.dev/hold": "both changes make one roll"})
		w := workload{kind: k.name, name: "marked", annotations: annotations, read: func(pod *corev1.PodSpec) {
			readsAll(events.KindSecret, "cache")(pod)
			further(&pod.Containers, "second", func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, envFrom(events.KindConfigMap, "app", nil)) })
		}}
		r.create(w)
		all[w.String()] = 1
	}
	return all
}

// marksTheLastSource is for the workloads of placeMarked.
func (r *rig) marksTheLastSource(marked tally) {
	r.Helper()
	secret := events.Source{Kind: events.KindSecret, Namespace: r.namespace, Name: "cache"}
	configMap := events.Source{Kind: events.KindConfigMap, Namespace: r.namespace, Name: "app"}
	r.rolls("both change", marked, func() {
		r.set(secret.Kind, secret.Name, "a", "two")
		version := r.source(secret.Kind, secret.Name).GetResourceVersion()
		r.eventually("the change of the Secret is published", func(context.Context) bool { return r.lastChange(secret).ResourceVersion == version })
		r.set(configMap.Kind, configMap.Name, "a", "two")
		r.reachFence()
		for w := range marked {
			r.annotateWorkload(w, "keyturn.dev/hold", nil)
		}
	})
	change := r.lastChange(configMap)
	for w := range marked {
		var marker struct {
			Type, Name, Namespace, Hash string
			ContainerRefs               []string
			ObservedAt                  int64
		}
		if err := json.Unmarshal([]byte(r.podTemplate(w).Annotations[reloadedFrom]), &marker); err != nil {
			r.Errorf("%s: %v", w, err)
			continue
		}
		if marker.Type != "CONFIGMAP" || marker.Name != "app" || marker.Namespace != r.namespace || !slices.Equal(marker.ContainerRefs, []string{"second"}) ||
			marker.ObservedAt != change.Time.Unix() || !strings.Contains(r.workload(w).Annotations["keyturn.dev/rolled"], marker.Hash+"@") {
			r.Errorf("%s: the marker is %+v", w, marker)
		}
	}
}

// annotateWorkload sets an annotation of a workload, named as in a tally. Nil removes it.
func (r *rig) annotateWorkload(workload, annotation string, value any) {
	r.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: value}}})
	if err != nil {
		r.Fatal(err)
	}
	kindOf, name, _ := strings.Cut(workload, "/")
	place := slices.IndexFunc(kinds, func(k kind) bool { return k.name == kindOf })
	resource := dynamic.NewForConfigOrDie(plane.Config()).Resource(kinds[place].resource).Namespace(r.namespace)
	if _, err := resource.Patch(r.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// replacesWhatReloaderLeft starts the programs where Reloader has rolled a workload of each kind, with either strategy.
func (r *rig) replacesWhatReloaderLeft(strategy string) {
	r.Helper()
	const old = "0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33"
	r.write(events.KindSecret, "db", map[string]string{"a": "one"})
	want := tally{}
	for _, k := range kinds {
		w := workload{
			kind: k.name, name: "web", annotations: secretReloader("reload", "db"),
			template: map[string]string{reloadedFrom: `{"type":"SECRET","name":"db","hash":"` + old + `"}`},
			read: func(pod *corev1.PodSpec) {
				pod.Containers[0].Env = []corev1.EnvVar{{Name: "A"}, {Name: "STAKATER_DB_SECRET", Value: old}, {Name: "B"}}
			},
		}
		r.create(w)
		want[w.String()] = 1
	}
	r.rollsNothing("the programs start", r.start)
	r.rolls("the Secret changes", want, func() { r.set(events.KindSecret, "db", "a", "two") })
	for w := range want {
		template := r.podTemplate(w)
		isReplaced := template.Spec.Containers[0].Env[1].Value != old
		isMarked := !strings.Contains(template.Annotations[reloadedFrom], old)
		if len(template.Spec.Containers[0].Env) != 3 || isReplaced != (strategy == "env-vars") || isMarked != (strategy == "annotations") {
			r.Errorf("%s: %v, %s", w, template.Spec.Containers[0].Env, template.Annotations[reloadedFrom])
		}
	}
}

// seesARevertOfWhatReloaderWrites has an owner revert a roll of the Deployment owned.
func (r *rig) seesARevertOfWhatReloaderWrites() {
	r.Helper()
	operator := r.operate("owned")
	r.secret("owned", map[string]string{"password": "two"})
	failed := r.outcomeOf("owned", events.VerbFailed)
	if failed.Reason != "reverted" {
		r.Errorf("the rollout failed with %s: %s", failed.Reason, failed.Message)
	}
	r.eventually("the revert is counted", func(context.Context) bool {
		return strings.Contains(r.deployment("owned").Annotations["keyturn.dev/reverted"], `"secret/owned":"1:`)
	})
	if explained := r.explain("deployment/owned"); !strings.Contains(explained, "for secret/owned: failed (reverted): ") {
		r.Errorf("explained as:\n%s", explained)
	}
	operator.end()
	r.secret("owned", map[string]string{"password": "three"})
	r.outcomeOf("owned", events.VerbCompleted)
	template := &r.deployment("owned").Spec.Template
	if len(reloaderVariables(template)) == 0 && template.Annotations[reloadedFrom] == "" {
		r.Error("the template has neither the marker nor a variable")
	}
}

// placeKeyed creates workloads that are annotated with Reloader's keys or with others, and what they read.
func (r *rig) placeKeyed() {
	r.Helper()
	for _, name := range []string{"ours", "theirs", "ignored", "matched"} {
		r.write(events.KindSecret, name, map[string]string{"a": "one", "b": "one"})
	}
	r.annotate(events.KindSecret, "ignored", "example.org/ignore", "true")
	r.annotate(events.KindSecret, "matched", "example.org/match", "true")
	reads := func(secret string) func(*corev1.PodSpec) { return readsKey(events.KindSecret, secret, "a") }
	r.create(workload{name: "ours", annotations: map[string]string{"example.org/auto": "true"}, read: reads("ours")})
	r.create(workload{name: "theirs", annotations: reloader("auto", "true"), read: reads("theirs")})
	r.create(workload{name: "ignored", on: "auto", read: reads("ignored")})
	r.create(workload{name: "matched", annotations: map[string]string{"example.org/search": "true"}, read: reads("matched")})
	r.create(workload{name: "named", annotations: map[string]string{"example.org/secrets": "ours"}, read: reads("ours")})
}

// countsOtherKeys is for the workloads of placeKeyed.
func (r *rig) countsOtherKeys() {
	r.Helper()
	change := func(key, value string) func() {
		return func() {
			for _, name := range []string{"ours", "theirs", "ignored", "matched"} {
				r.set(events.KindSecret, name, key, value)
			}
		}
	}
	r.rolls("with Reloader's keys", once("statefulset/theirs", "statefulset/ignored"), change("a", "two"))
	r.rollsNothing("the programs are started with other keys", func() {
		r.stop(r.watcher)
		r.stop(r.actuator)
		flag := "--reloader-annotations=auto-annotation=example.org/auto,auto-search-annotation=example.org/search,secret-annotation=example.org/secrets," +
			"ignore-annotation=example.org/ignore,search-match-annotation=example.org/match"
		r.startActuator(flag, "--reloader")
		r.startWatcher(flag)
	})
	r.rolls("with other keys", once("statefulset/ours", "statefulset/matched", "statefulset/named"), change("a", "three"))
	r.rolls("a key that only the named source counts with", once("statefulset/named"), change("b", "two"))
}
