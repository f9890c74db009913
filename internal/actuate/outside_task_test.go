//go:build !race

package actuate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// decidedAt is the time in the mark of a roll.
var decidedAt = regexp.MustCompile(`\\"at\\":\\"[^"]*",`)

func TestThePatchIsTheSameHoweverItIsMade(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = 0 // The count has the time of the first roll.
		s.workload("web", auto, reads("secret/db", "configmap/app"))
		s.begin("secret/db", "configmap/app")
		var bodies []string
		refuse := func(request k8stesting.PatchActionImpl) (bool, runtime.Object, error) {
			bodies = append(bodies, decidedAt.ReplaceAllString(string(request.Patch), ""))
			return true, nil, unavailable()
		}
		s.onPatch(refuse)
		s.set("secret/db", "password", "two")
		s.set("configmap/app", "password", "two")
		s.pass(20 * time.Second)
		s.restart() // Another leader makes it, too.
		s.onPatch(refuse)
		s.pass(20 * time.Second)
		if len(bodies) < 8 {
			s.Fatalf("there are %d attempts, want several of each leader", len(bodies))
		}
		for _, body := range bodies {
			if body != bodies[0] {
				s.Fatalf("made again it is another:\n%s\n%s", bodies[0], body)
			}
		}
	})
}

func TestThePatchWritesItsOwnAnnotationsAndNothingElse(t *testing.T) {
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b0-01"
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = 0
		templates := map[string]string{
			"web": "/spec/template", "statefulset/web": "/spec/template", "daemonset/web": "/spec/template",
			"cronjob/web": "/spec/jobTemplate/spec/template",
		}
		gone := annotated(annotationRecord, `{"secret/gone":"k0a1b2c3d:00000000000000000000000000000001@3/u"}`)
		for name := range templates {
			s.workload(name, auto, reads("secret/db", "configmap/app"))
			s.writeAs(workload.FieldManager, name, gone)
		}
		s.begin("secret/db", "configmap/app")
		s.writesSince(&s.seen)
		s.settled("secret/db", "password", "two", func(c *events.Change) { c.Trace.Parent = traceparent })
		writes := s.writesSince(&s.seen)
		if len(writes) != len(templates) {
			s.Fatalf("written are %+v, want each workload once", writes)
		}
		for _, w := range writes {
			sets, tests := make(map[string]any), make(map[string]any)
			for _, step := range stepsOf([]byte(w.body)) {
				if step.Op == "test" {
					tests[step.Path] = step.Value
				} else {
					sets[step.Path] = step.Value
				}
			}
			if uid := string(metaOf(s.object(w.workload)).GetUID()); tests["/metadata/uid"] != uid {
				s.Errorf("%s: the tested uid is %v, want %s, that of the workload", w.workload, tests["/metadata/uid"], uid)
			}
			const record = "/metadata/annotations/keyturn.dev~1rolled"
			var entries map[string]string
			if err := json.Unmarshal([]byte(fmt.Sprint(sets[record])), &entries); err != nil {
				s.Errorf("%s: the record is no JSON: %v", w.workload, err)
			}
			if got := slices.Sorted(maps.Keys(entries)); !slices.Equal(got, []string{"configmap/app", "secret/db"}) {
				s.Errorf("%s: the record is of %q, want it of what it reads, without secret/gone", w.workload, got)
			}
			delete(sets, record)
			template := templates[w.workload]
			want := map[string]any{
				template + "/metadata/annotations":                          map[string]any{}, // there were none
				template + "/metadata/annotations/keyturn.dev~1cause":       "secret/db (password)",
				template + "/metadata/annotations/keyturn.dev~1revision":    s.podAnnotation(w.workload, annotationRevision),
				template + "/metadata/annotations/keyturn.dev~1traceparent": traceparent,
				"/metadata/annotations/keyturn.dev~1last":                   metaOf(s.object(w.workload)).GetAnnotations()["keyturn.dev/last"],
			}
			if diff := cmp.Diff(want, sets); diff != "" {
				s.Errorf("%s: what it sets beside the record (-want +got):\n%s", w.workload, diff)
			}
		}
	})
}

func TestARecordAloneLeavesThePodTemplateAlone(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.writesSince(&s.seen)
		s.set("secret/db", "password", "two")
		s.edit("web", image("example.com/app:2")) // Its pods start with the new content.
		s.settle()
		writes := s.writesSince(&s.seen)
		if len(writes) != 1 || writes[0].rolls || strings.Contains(writes[0].body, "/spec/") {
			s.Errorf("got %+v, want a patch of the metadata alone", writes)
		}
		s.wantTold("web skipped pods-newer")
	})
}

// causeOf returns the cause on the pod template after a roll.
func causeOf(s *scene) string {
	s.Helper()
	s.settle()
	s.wantRolls("web")
	return s.podAnnotation("web", events.AnnotationCause)
}

func TestTheCauseOfManySourcesCountsTheLastOnes(t *testing.T) {
	play(t, func(s *scene) {
		var names []string
		for i := range 40 {
			names = append(names, fmt.Sprintf("configmap/%s-%d", strings.Repeat("a", 100), 10+i))
		}
		s.workload("web", auto, reads(names...))
		s.begin(names...)
		for _, name := range names {
			s.set(name, "password", "two")
		}
		got := causeOf(s)
		if len(got) > 2<<10 || !strings.HasPrefix(got, names[0]+" (password), ") || !strings.HasSuffix(got, " more") {
			s.Errorf("got %d bytes: %q", len(got), got)
		}
	})
}

func TestTheCauseNamesWhatIsBehindASecret(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.set("secret/db", "password", "two", func(c *events.Change) {
			c.Cause = &events.Cause{Source: "externalsecret/db", Event: "bao/root/secret/shop/db/7"}
		})
		if got, want := causeOf(s), "secret/db (password) by externalsecret/db for bao/root/secret/shop/db/7"; got != want {
			s.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestWorkloadsAreChangedByJSONPatchesOfOneFieldManager(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.rotate("two", "web")
		patches := s.requests("patch", "deployments")
		if len(patches) < 2 {
			s.Fatalf("there are %d patches, want one of the record and a roll", len(patches))
		}
		for _, action := range patches {
			request, ok := action.(k8stesting.PatchActionImpl)
			if !ok || request.PatchType != types.JSONPatchType || request.PatchOptions.FieldManager != "keyturn" {
				s.Errorf("sent was %+v, want a JSON patch of the field manager keyturn", action)
			}
		}
	})
}

// The watch is late: the workload is gone, and the actuator does not know.
func TestAPatchOfAWorkloadThatIsGoneIsNotDenied(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", apierrors.NewNotFound(appsv1.Resource("deployments"), "web"))
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Minute)
		s.wantTold()
		s.delete("web")
		s.pass(2 * time.Minute)
		s.wantTold("web skipped workload-gone")
	})
}
