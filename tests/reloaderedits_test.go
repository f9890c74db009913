package tests

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// readingAll makes a container read all keys of a Secret.
func readingAll(secret string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, envFrom(events.KindSecret, secret, nil)) }
}

// editPods changes the pod template of a Deployment, as somebody else than the programs.
func (r *rig) editPods(name string, edit func(*corev1.PodSpec)) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		deployments := r.client.AppsV1().Deployments(r.namespace)
		d, err := deployments.Get(r.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		edit(&d.Spec.Template.Spec)
		_, err = deployments.Update(r.Context(), d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		r.Error(err) // It is not called by the goroutine of the test.
	}
}

// An edit of the template replaces the pods, which then have the change: whoever was to roll for it leaves the edit as it is.
func TestAnEditOfTheTemplateDuringARollIsNotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "1ms", "--settle-max", "1ms", "--reloader", "--reloader-strategy", "env-vars"}})
	r.write(events.KindSecret, "db", map[string]string{"a": "one"})
	r.create(workload{kind: "deployment", name: "web", on: "secret/db", read: func(pod *corev1.PodSpec) {
		further(&pod.Containers, "reader", readingAll("db"))
	}})
	reader := func(pod *corev1.PodSpec) *corev1.Container {
		return &pod.Containers[slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "reader" })]
	}
	prepend := func(name string) func(*corev1.PodSpec) {
		return func(pod *corev1.PodSpec) {
			c := reader(pod)
			c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: name, Value: "1"})
		}
	}
	// edits has what is done to the template that a patch was made of before the API server gets the patch, and answers what it answers.
	edits, answers := make(chan func(*corev1.PodSpec), 1), make(chan int, 100)
	r.startActuator("--kubeconfig", r.throughProxy(func(patch string, pass, _ func() int) {
		if !strings.Contains(patch, "STAKATER_DB_SECRET") {
			pass()
			return
		}
		select {
		case edit := <-edits:
			r.editPods("web", edit)
		default:
		}
		answers <- pass()
	}))
	r.startWatcher()
	const ours, refused = "STAKATER_DB_SECRET", http.StatusUnprocessableEntity
	last := ""
	for i, tt := range []struct {
		name   string
		edit   func(*corev1.PodSpec)
		answer int
		// containers are then those of the template, and variables those of the one that reads the Secret.
		containers, variables []string
	}{
		{"the containers are exchanged", func(pod *corev1.PodSpec) { slices.Reverse(pod.Containers) }, refused, []string{"reader", "main"}, nil},
		{"the first variable is added", prepend("FIRST"), refused, []string{"reader", "main"}, []string{"FIRST"}},
		{"nothing is edited", nil, http.StatusOK, []string{"reader", "main"}, []string{"FIRST", ours}},
		{"a variable is put in front", prepend("SECOND"), refused, []string{"reader", "main"}, []string{"SECOND", "FIRST", ours}},
		{"a container is put in front", func(pod *corev1.PodSpec) {
			pod.Containers = slices.Insert(pod.Containers, 0, corev1.Container{Name: "proxy", Image: "example.com/app:1"})
		}, refused, []string{"proxy", "reader", "main"}, []string{"SECOND", "FIRST", ours}},
		{"the variable is removed", func(pod *corev1.PodSpec) {
			c := reader(pod)
			c.Env = c.Env[:2]
		}, refused, []string{"proxy", "reader", "main"}, []string{"SECOND", "FIRST"}},
		{"nothing is edited again", nil, http.StatusOK, []string{"proxy", "reader", "main"}, []string{"SECOND", "FIRST", ours}},
	} {
		if tt.edit != nil {
			edits <- tt.edit
		}
		r.set(events.KindSecret, "db", "a", strconv.Itoa(i))
		version := r.source(events.KindSecret, "db").GetResourceVersion()
		r.eventually("the change is recorded", func(context.Context) bool {
			return len(answers) > 0 && strings.Contains(r.deployment("web").Annotations["keyturn.dev/rolled"], "@"+version+"/")
		})
		if got := <-answers; got != tt.answer {
			t.Errorf("%s: the patch is answered with %d, want %d", tt.name, got, tt.answer)
		}
		template := &r.deployment("web").Spec.Template
		var containers, variables []string
		for _, c := range template.Spec.Containers {
			containers = append(containers, c.Name)
		}
		for _, v := range reader(&template.Spec).Env {
			variables = append(variables, v.Name)
		}
		if diff := cmp.Diff(tt.containers, containers); diff != "" {
			t.Errorf("%s: containers (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.variables, variables); diff != "" {
			t.Errorf("%s: variables (-want +got):\n%s", tt.name, diff)
		}
		value := reloaderVariables(template)["reader/"+ours]
		if written := value != last; value != "" && written != (tt.answer == http.StatusOK) {
			t.Errorf("%s: the variable is %q, and was %q", tt.name, value, last)
		}
		last = value
	}
	if len(answers) > 0 {
		t.Errorf("%d patches more than wanted", len(answers))
	}
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
