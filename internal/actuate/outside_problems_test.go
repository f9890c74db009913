//go:build !race

package actuate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheProblemsOfAWorkloadAreToldOnceForEachWording(t *testing.T) {
	const wave, interval = "keyturn.dev/wave", "keyturn.dev/min-interval"
	play(t, func(s *scene) {
		s.beginWeb()
		told := 0
		for _, step := range []struct {
			name    string
			aspects []aspect
			want    []string // the annotations that are named; none: nothing is told
		}{
			{"no problem", []aspect{image("example.com/app:2")}, nil},
			{"a problem", []aspect{annotated(wave, "soon")}, []string{wave}},
			{"the same problem", []aspect{image("example.com/app:3")}, nil},
			{"another one as well", []aspect{annotated(interval, "long")}, []string{wave, interval}},
			{"none any more", []aspect{without(wave), without(interval)}, nil},
			{"the first one again", []aspect{annotated(wave, "soon")}, []string{wave}},
		} {
			s.edit("web", step.aspects...)
			s.pass(10 * time.Second)
			written := s.kubernetesEvents()[told:]
			told += len(written)
			if len(written) != min(1, len(step.want)) {
				s.Errorf("%s: %d Kubernetes Events are written", step.name, len(written))
				continue
			}
			for _, event := range written {
				text := textOf(event)
				for _, annotation := range []string{wave, interval} {
					if names := strings.Contains(text, annotation); names != slices.Contains(step.want, annotation) {
						s.Errorf("%s: that %s is invalid is told: %t: %s", step.name, annotation, names, text)
					}
				}
				if !strings.HasPrefix(text, "web Warning InvalidAnnotation ") {
					s.Errorf("%s: told is %s", step.name, text)
				}
			}
		}
	})
}

func TestALogLineAboutAWorkloadIsShort(t *testing.T) {
	const most = 2000
	play(t, func(s *scene) {
		item := strings.Repeat("x", 100) + ","
		s.workload("web", on(strings.Repeat(item, 100)))
		s.begin()
		lines := 0
		for line := range strings.Lines(s.logText()) {
			if strings.Contains(line, "invalid annotation") {
				lines++
				if len(line) > most {
					s.Errorf("a line of %d bytes was logged, want %d at most", len(line), most)
				}
			}
		}
		if lines != 1 {
			s.Errorf("the problems were logged %d times, want once", lines)
		}
	})
}

func TestTheLogSaysOnceThatAWorkloadIsRolledWithoutItsController(t *testing.T) {
	const targets = `targets:
- {apiVersion: example.org/v1, kind: Widget, resource: widgets, reads: [{kind: secret, path: spec.secret}], trigger: {annotations: spec.annotations}}
`
	widgets := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	play(t, func(s *scene) {
		s.target(targets)
		client := s.serveCustom(map[schema.GroupVersionResource]string{widgets: "WidgetList"})
		s.workload("web", auto, reads("secret/db"), func(object *metav1.ObjectMeta, _ *corev1.PodTemplateSpec) {
			object.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "example.org/v1", Kind: "Widget", Name: "all", UID: "uid-all", Controller: new(true),
			}}
		})
		s.begin("secret/db")
		said := func(what string, want int) {
			s.Helper()
			if got := strings.Count(s.logText(), "workload=deployment/web namespace=shop controller=widget/all"); got != want {
				s.Errorf("%s: said %d times, want %d", what, got, want)
			}
		}
		said("without its controller", 1)
		s.edit("web", image("example.com/app:2"))
		s.pass(10 * time.Second)
		said("again", 1)
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Widget", "spec": map[string]any{"secret": "other"},
		}}
		widget.SetName("all")
		widget.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto"})
		client.put(widgets, widget)
		s.pass(10 * time.Second)
		said("when it is there", 1)
		client.remove(widgets, "all")
		s.pass(10 * time.Second)
		said("when it has gone", 2)
	})
}
