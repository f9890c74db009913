package reloader

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

// variables are the variables of a Deployment's containers that are called as those of Reloader, by "<container>/<name>".
func (r *rig) variables(name string) map[string]string {
	r.Helper()
	return variablesOf(r.deployment(name).Spec.Template.Spec.Containers)
}

func variablesOf(containers []corev1.Container) map[string]string {
	found := make(map[string]string)
	for _, c := range containers {
		for _, v := range c.Env {
			if strings.HasPrefix(v.Name, "STAKATER_") {
				found[c.Name+"/"+v.Name] = v.Value
			}
		}
	}
	return found
}

// marked returns the type and the name of the source that the marker of a Deployment names, as "SECRET db", empty if there is none.
func (r *rig) marked(name string) string {
	r.Helper()
	return r.markedBy(r.deployment(name).Spec.Template.Annotations)
}

// markedBy is marked of a pod template with annotations.
func (r *rig) markedBy(annotations map[string]string) string {
	r.Helper()
	var marker struct{ Type, Name, Hash string }
	text := annotations["reloader.stakater.com/last-reloaded-from"]
	if text == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(text), &marker); err != nil || marker.Hash == "" {
		r.Fatalf("the marker is %s: %v", text, err)
	}
	return marker.Type + " " + marker.Name
}

func TestARollLeavesWhatTheStrategyOfReloaderLeaves(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"env-vars", "annotations"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.secret("db", map[string]string{"password": "one"})
			r.configMap("app.settings", map[string]string{"colour": "red"})
			r.deploy("web", auto(), func(template *corev1.PodTemplateSpec) {
				programs.ReadSecretKey(template, "db", "password")
				template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "example.com/app:1", EnvFrom: []corev1.EnvFromSource{{
					ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app.settings"}},
				}}}}
			})
			if strategy == "env-vars" {
				r.start() // It is Reloader's default.
			} else {
				r.start("--reload-strategy", strategy)
			}
			check := func(marked string, variables ...string) {
				t.Helper()
				if strategy == "annotations" {
					variables = nil
				} else {
					marked = ""
				}
				found := r.variables("web")
				for _, name := range variables {
					if len(found[name]) != 40 {
						t.Errorf("the variables are %v, want %s", found, name)
					}
				}
				if got := r.marked("web"); got != marked || len(found) != len(variables) {
					t.Errorf("the marker is %q, want %q; the variables are %v, want %v", got, marked, found, variables)
				}
			}
			r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
			check("SECRET db", "main/STAKATER_DB_SECRET")
			first := r.variables("web")["main/STAKATER_DB_SECRET"]
			r.rolls("web", func() { r.configMap("app.settings", map[string]string{"colour": "green"}) })
			check("CONFIGMAP app.settings", "main/STAKATER_DB_SECRET", "main/STAKATER_APP_SETTINGS_CONFIGMAP")
			r.rolls("web", func() { r.secret("db", map[string]string{"password": "three"}) })
			check("SECRET db", "main/STAKATER_DB_SECRET", "main/STAKATER_APP_SETTINGS_CONFIGMAP")
			if again := r.variables("web")["main/STAKATER_DB_SECRET"]; strategy == "env-vars" && again == first {
				t.Errorf("the variable is still %s", again)
			}
		})
	}
}

func TestNamesMeanWhatTheyMeanToReloader(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"foo", "foobaz", "rebar", "baz"} {
		r.configMap(name, map[string]string{"read": "one", "unread": "one"})
	}
	r.deploy("web", map[string]string{"configmap.reloader.stakater.com/reload": "foo|bar"}, func(template *corev1.PodTemplateSpec) {
		programs.ReadConfigMapKey(template, "foo", "read")
	})
	r.start()
	r.rolls("web", func() { r.configMap("foo", map[string]string{"read": "one", "unread": "two"}) })
	r.rolls("web", func() { r.configMap("foobaz", map[string]string{"read": "two"}) })
	r.rolls("web", func() { r.configMap("rebar", map[string]string{"read": "two"}) })
	r.leaves("web", func() { r.configMap("baz", map[string]string{"read": "two"}) })
}
