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

func TestReloadersVariablesAreInTheContainerThatReadsTheSource(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--reloader", "--reloader-strategy", "env-vars"}})
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
	r.placeFence()
	r.start()
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
					t.Errorf("%s: the variables are %v, want %s with another value than %s", w, found, name, earlier[w])
				}
				if template.Annotations[reloadedFrom] != "" || programs.Revision(template) == "" {
					t.Errorf("%s: the annotations are %v", w, template.Annotations)
				}
				earlier[w] = found[name]
			}
		}
	}
}

func TestReloadersMarkerNamesTheLastSource(t *testing.T) {
	t.Parallel() // most of it is waiting until it is quiet
	// Far longer than the pauses of a test on a slow machine.
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "10s", "--settle-max", "30s", "--reloader"}})
	r.write(events.KindSecret, "db", map[string]string{"a": "one"})
	r.write(events.KindConfigMap, "app", map[string]string{"a": "one"})
	want := tally{}
	for _, k := range kinds {
		w := workload{kind: k.name, name: "web", annotations: reloader("auto", "true"), read: func(pod *corev1.PodSpec) {
			readsAll(events.KindSecret, "db")(pod)
			further(&pod.Containers, "second", func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, envFrom(events.KindConfigMap, "app", nil)) })
		}}
		r.create(w)
		want[w.String()] = 1
	}
	r.placeFence()
	r.start()
	r.rolls("both change", want, func() {
		r.set(events.KindSecret, "db", "a", "two")
		r.set(events.KindConfigMap, "app", "a", "two")
	})
	for w := range want {
		var marker struct {
			Type, Name, Namespace, Hash string
			ContainerRefs               []string
			ObservedAt                  int64
		}
		if err := json.Unmarshal([]byte(r.podTemplate(w).Annotations[reloadedFrom]), &marker); err != nil {
			t.Errorf("%s: %v", w, err)
			continue
		}
		source := events.Source{Kind: events.KindConfigMap, Namespace: r.namespace, Name: "app"}
		change, err := r.lastEvent(source).Change()
		if err != nil {
			t.Fatal(err)
		}
		if marker.Type != "CONFIGMAP" || marker.Name != "app" || marker.Namespace != r.namespace || !slices.Equal(marker.ContainerRefs, []string{"second"}) ||
			marker.ObservedAt != change.Time.Unix() || !strings.Contains(r.workload(w).Annotations["keyturn.dev/rolled"], marker.Hash+"@") {
			t.Errorf("%s: the marker is %+v", w, marker)
		}
	}
}

func TestWhatReloaderLeftRollsNothingAndIsReplaced(t *testing.T) {
	const old = "0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33"
	for _, strategy := range []string{"annotations", "env-vars"} {
		t.Run(strategy, func(t *testing.T) {
			r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--reloader", "--reloader-strategy", strategy}})
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
			r.placeFence()
			r.rollsNothing("the programs start", r.start)
			r.rolls("the Secret changes", want, func() { r.set(events.KindSecret, "db", "a", "two") })
			for w := range want {
				template := r.podTemplate(w)
				isReplaced := template.Spec.Containers[0].Env[1].Value != old
				isMarked := !strings.Contains(template.Annotations[reloadedFrom], old)
				if len(template.Spec.Containers[0].Env) != 3 || isReplaced != (strategy == "env-vars") || isMarked != (strategy == "annotations") {
					t.Errorf("%s: %v, %s", w, template.Spec.Containers[0].Env, template.Annotations[reloadedFrom])
				}
			}
		})
	}
}

func TestARevertIsSeenBesideWhatReloaderWrites(t *testing.T) {
	for _, strategy := range []string{"annotations", "env-vars"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--reloader", "--reloader-strategy", strategy}})
			r.secret("db", map[string]string{"password": "one"})
			r.deployOwned("web", "db")
			r.start()
			operator := r.operate("web", false)
			r.secret("db", map[string]string{"password": "two"})
			failed := r.outcomeOf("web", events.VerbFailed)
			if failed.Reason != "reverted" {
				t.Errorf("the rollout failed with %s: %s", failed.Reason, failed.Message)
			}
			r.eventually("the revert is counted", func(context.Context) bool {
				return strings.Contains(r.deployment("web").Annotations["keyturn.dev/reverted"], `"secret/db":"1:`)
			})
			if explained := r.explain("deployment/web"); !strings.Contains(explained, "for secret/db: failed (reverted): ") {
				t.Errorf("explained as:\n%s", explained)
			}
			operator.end()
			r.secret("db", map[string]string{"password": "three"})
			r.outcomeOf("web", events.VerbCompleted)
			template := &r.deployment("web").Spec.Template
			if len(reloaderVariables(template)) == 0 && template.Annotations[reloadedFrom] == "" {
				t.Error("the template has neither the marker nor a variable")
			}
		})
	}
}

func TestOtherKeysOfAnnotationsRollNothingAndThenCount(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
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
	r.placeFence()
	r.start()
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
