//go:build !race

package actuate_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAPatchThatIsDeniedIsToldOnceAndTriedUntilItIsAccepted(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", deniedByAdmission())
		s.set("secret/db", "password", "two")
		s.pass(30 * time.Second) // The sixth is 31 seconds after the first.
		s.wantTold()
		s.pass(10 * time.Second)
		s.wantTold("web failed patch-denied")
		s.wantLast("web", "failed patch-denied", "not today")
		s.pass(3 * time.Hour)
		s.wantRolls()
		s.wantTold()
		s.refuse("web", nil)
		s.pass(11*time.Minute + 5*time.Second)
		s.wantRolls("web")
		s.wantRecord("web", "secret/db")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

// attempts counts the patches of workloads that the actuator that was started last has sent, the denied ones included.
func (s *scene) attempts() int { return len(s.requests("patch", "deployments")) }

func TestAPatchThatIsDeniedIsTriedRarelyInTheEnd(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", deniedByAdmission())
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		before := s.attempts()
		for range 3600 {
			s.overwrite("web", func(*appsv1.Deployment) {}) // as its controller does that has no news
			s.pass(time.Second)
		}
		if got := s.attempts() - before; got < 5 || got > 6 {
			s.Errorf("within an hour it is tried %d times, want once in ten minutes", got)
		}
	})
}

func TestAPatchThatIsDeniedIsTriedAtOnceWhenTheWorkloadOrTheContentChanges(t *testing.T) {
	for name, changes := range map[string]func(*scene){
		"the workload has another image":  func(s *scene) { s.edit("web", image("example.com/app:2")) },
		"somebody annotates the workload": func(s *scene) { s.edit("web", annotated("example.com/exempt", "true")) },
		"the source changes again":        func(s *scene) { s.set("secret/db", "password", "three") },
	} {
		playOf(t, name, func(s *scene) {
			s.beginWeb()
			s.refuse("web", deniedByAdmission())
			s.set("secret/db", "password", "two")
			s.pass(time.Hour)
			s.wantTold("web failed patch-denied")
			s.refuse("web", nil)
			changes(s)
			s.settle()
			s.wantRecord("web", "secret/db")
		})
	}
}

func TestARecordThatIsDeniedBesideAChangeOnHoldIsTriedRarely(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/x", "secret/y"))
		s.begin("secret/x", "secret/y")
		s.refuse("web", deniedByAdmission())
		before := s.attempts()
		s.set("secret/y", "password", "two")
		s.edit("web", image("example.com/app:2")) // Its pods have read y since, and not x.
		s.set("secret/x", "password", "two", sourceHeld("tofu apply"))
		s.pass(time.Hour)
		if got := s.attempts() - before; got < 6 || got > 20 {
			s.Errorf("within an hour it is tried %d times", got)
		}
		s.wantTold("web held source-on-hold")
		s.refuse("web", nil)
		s.pass(2 * time.Hour)
		s.wantRecord("web", "secret/y")
		s.wantRolls()
	})
}

func TestOnlyDenialsCountUntilThatIsTold(t *testing.T) {
	for _, tt := range []struct {
		name, workload string
		prepare, deny  func(s *scene)
	}{
		{
			"by admission", "web", func(s *scene) { s.workload("web", auto, reads("secret/db")) },
			func(s *scene) { s.refuse("web", deniedByAdmission()) },
		},
		{
			"because another Job has the name that is needed", "job/import",
			func(s *scene) {
				s.options.RecreateJobs = true
				s.job("import", auto, reads("secret/db"))
				s.job("import-keyturn")
			},
			func(*scene) {},
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			tt.prepare(s)
			s.begin("secret/db")
			mend := s.onPatch(func(k8stesting.PatchActionImpl) (bool, runtime.Object, error) { return true, nil, unavailable() })
			s.set("secret/db", "password", "two")
			s.pass(10 * time.Minute) // That is twice as many attempts as there may be denials.
			s.wantTold()
			tt.deny(s)
			mend()
			s.pass(30 * time.Second) // The sixth is 31 seconds after the first, which may come a minute later.
			s.wantTold()
			s.pass(80 * time.Second)
			s.wantTold(tt.workload + " failed patch-denied")
		})
	}
}

func TestDenialsAreCountedForOneContent(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", deniedByAdmission())
		s.set("secret/db", "password", "two")
		s.pass(25 * time.Second) // five denials
		s.set("secret/db", "password", "three")
		s.pass(30 * time.Second) // five more
		s.wantTold()
		s.pass(10 * time.Second)
		s.wantTold("web failed patch-denied")
	})
}

// The watch is late for moments after another leader has written the record, but not for half a minute.
func TestAPatchThatIsNeverAppliedIsAFailedOneInTheEnd(t *testing.T) {
	levers := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "levers"}
	const targets = `targets:
- apiVersion: example.org/v1
  kind: Lever
  resource: levers
  reads: [{kind: secret, path: spec.secret}]
  trigger: {field: "metadata.annotations['example.org/roll']", text: now}
`
	deployment := func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.refuse("web", kube.NotApplied())
	}
	lever := func(annotations map[string]string) func(*scene) {
		return func(s *scene) {
			s.target(targets)
			client := s.serveCustom(map[schema.GroupVersionResource]string{levers: "LeverList"})
			client.PrependReactor("patch", "levers", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, kube.NotApplied() })
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "Lever", "spec": map[string]any{"secret": "db"},
			}}
			object.SetName("web")
			object.SetAnnotations(annotations)
			client.put(levers, object)
		}
	}
	tests := []struct {
		name    string
		prepare func(s *scene)
		fails   bool
	}{
		{"a Deployment", deployment, true},
		{"an object of a target", lever(map[string]string{workload.AnnotationRollOn: "auto"}), true},
		{
			"one that waits until its operator has acted on the last roll",
			lever(map[string]string{workload.AnnotationRollOn: "auto", "example.org/roll": "now"}), false,
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			test.prepare(s)
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.pass(30 * time.Second)
			if s.logged("deciding again") == 0 || s.logged("patch failed; retrying") != 0 {
				s.Error("within half a minute, it is not only decided again")
			}
			s.pass(10 * time.Minute)
			if failed := s.logged("patch failed; retrying") > 0; failed != test.fails {
				s.Errorf("after that, it counts as failed: %t, want %t", failed, test.fails)
			}
			s.wantTold() // It is never given up.
		})
	}
}
