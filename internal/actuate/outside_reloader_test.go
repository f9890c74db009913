//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reloader is taken to have finished when it has rolled nothing for five seconds, and a change waits a minute for that at most.
func TestWorkloadsAreLeftToReloaderWhileItRolls(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Reloader.On = true
		earlier := reloadedAt(time.Now().Add(-time.Hour), "secret/db")
		s.workload("web", auto, reads("secret/db"), earlier)
		s.workload("api", auto, reads("configmap/app"), earlier)
		s.workload("office/web", auto, reads("secret/db"))
		s.begin("secret/db", "configmap/app", "office/secret/db")
		password := 0
		change := func(names ...string) {
			password++
			for _, name := range names {
				s.set(name, "password", string(rune('a'+password)))
			}
		}

		// What Reloader did before is no news.
		change("secret/db")
		s.settle()
		s.wantRolls("web")

		// Reloader has rolled another workload of the namespace, and nothing in the other one. What others write is no roll of Reloader's.
		s.pass(time.Minute)
		s.reloaderRolls("api", "configmap/app")
		change("secret/db", "office/secret/db")
		s.settle()
		s.wantRolls("office/web")
		s.pass(2 * time.Second)
		s.edit("api", annotated("example.org/note", "it is written by someone else"))
		s.pass(1800 * time.Millisecond)
		s.wantRolls()
		s.pass(200 * time.Millisecond)
		s.wantRolls("web")

		// It works in another namespace first.
		s.reloaderRolls("office/web", "secret/db")
		change("secret/db")
		s.pass(4900 * time.Millisecond)
		s.wantRolls()
		s.pass(200 * time.Millisecond)
		s.wantRolls("web")

		// It does not come to an end, and the change has waited for long.
		s.pass(time.Minute)
		change("secret/db")
		for range 14 {
			s.reloaderRolls("api", "configmap/app")
			s.pass(4 * time.Second)
		}
		s.reloaderRolls("api", "configmap/app")
		s.pass(3900 * time.Millisecond)
		s.wantRolls()
		s.pass(200 * time.Millisecond)
		s.wantRolls("web")
	})
}

const (
	annotationPausePeriod = "deployment.reloader.stakater.com/pause-period"
	annotationPausedAt    = "deployment.reloader.stakater.com/paused-at"
)

// pausing lets a Deployment wait for further changes for a period before each roll.
func pausing(period time.Duration) aspect { return annotated(annotationPausePeriod, period.String()) }

// pausedAt returns when a workload says that its last pause began, zero if it says nothing.
func (s *scene) pausedAt(name string) time.Time {
	s.Helper()
	at, _ := time.Parse(time.RFC3339, s.annotation(name, annotationPausedAt))
	return at
}

func TestChangesWithinAPauseMakeOneRollAtItsEnd(t *testing.T) {
	play(t, func(s *scene) {
		const period = time.Hour
		s.options.Reloader.On = true
		s.beginWeb(pausing(period))
		s.settled("secret/db", "password", "two")
		s.wantTold("web held pause-period")
		begun := s.pausedAt("web")
		if begun.IsZero() {
			t.Fatal("the workload does not say since when")
		}
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantTold()
		// The stream and the workload remember it for the next leader.
		s.restart()
		s.set("secret/db", "password", "four")
		s.pass(time.Until(begun.Add(period - time.Second)))
		s.wantRolls()
		s.pass(2 * time.Second)
		s.wantRolls("web")
		s.wantTold("web held pause-period", "web started content-changed", "web completed rolled-out")
		if at := s.pausedAt("web"); !at.Equal(begun) {
			t.Errorf("the workload says that the pause began at %s, want still %s", at, begun)
		}
		if web, ok := s.object("web").(*appsv1.Deployment); !ok || web.Spec.Paused {
			t.Error("spec.paused is set")
		}
		s.pass(time.Minute)
		if at := s.pausedAt("web"); !at.IsZero() {
			t.Errorf("the workload still says that a pause began at %s", at)
		}
		s.pass(period)
		s.wantRolls()
		s.wantTold()
	})
}

func TestAPauseThatSomeoneElseHasBegunIsLeftToThem(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Reloader.On = true
		over := annotated(annotationPausedAt, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		s.workload("left", reads("secret/db"), pausing(time.Second), over)
		s.workload("paused", reads("secret/db"), pausing(time.Second), over)
		s.alter("paused", func(d *appsv1.Deployment) { d.Spec.Paused = true })
		s.observe("secret/db")
		s.startFor(time.Hour)
		if at := s.pausedAt("left"); !at.IsZero() {
			t.Errorf("what was left behind still says that a pause began at %s", at)
		}
		paused, ok := s.object("paused").(*appsv1.Deployment)
		if !ok || s.pausedAt("paused").IsZero() || !paused.Spec.Paused {
			t.Errorf("the Deployment that is paused was changed: %v", paused)
		}
		s.wantRolls()
	})
}

func TestAPauseIsNoneWithoutReloader(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb(pausing(time.Hour))
		for _, password := range []string{"two", "three"} {
			s.set("secret/db", "password", password)
			s.pass(time.Minute)
			s.wantRolls("web")
		}
		if at := s.pausedAt("web"); !at.IsZero() {
			t.Errorf("it is marked as paused since %s", at)
		}
	})
}

// What came and went before the end of a pause is no reason to roll.
func TestAContentThatComesBackWithinAPauseRollsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Reloader.On = true
		s.beginWeb(pausing(time.Minute))
		s.set("secret/db", "password", "two")
		s.pass(50 * time.Second)
		s.set("secret/db", "password", "one")
		s.pass(time.Minute)
		s.wantRolls()
		s.wantTold("web held pause-period", "web skipped up-to-date")
	})
}

func TestReloadersKubernetesEventsAreWrittenBesideOurs(t *testing.T) {
	denied := apierrors.NewForbidden(appsv1.Resource("statefulsets"), "web", errors.New("no"))
	for _, tt := range []struct {
		name, workload string
		happens        func(*scene)
		// want has the messages of Reloader's.
		want []string
	}{
		{"one for each source of a rollout, and none for its end", "statefulset/web", func(s *scene) {
			s.set("configmap/app", "password", "two")
			s.set("secret/db", "password", "two")
		}, []string{
			"Normal Reloaded Changes detected in 'app' of type 'CONFIGMAP' in namespace 'shop', Updated 'web' of type 'StatefulSet' in namespace 'shop'",
			"Normal Reloaded Changes detected in 'db' of type 'SECRET' in namespace 'shop', Updated 'web' of type 'StatefulSet' in namespace 'shop'",
			"Normal RolloutCompleted",
		}},
		{"one for a patch that is denied", "statefulset/web", func(s *scene) {
			s.refuse("statefulset/web", denied)
			s.set("secret/db", "password", "two")
		}, []string{
			"Warning ReloadFail Update for 'web' of type 'StatefulSet' in namespace 'shop' failed with error " +
				"patching statefulset/web in namespace shop: " + denied.Error(),
			"Warning RolloutFailed",
		}},
		{"none for pods that do not become ready", "web", func(s *scene) {
			s.stall("web")
			s.settled("secret/db", "password", "two")
			s.fail("web")
		}, []string{
			"Normal Reloaded Changes detected in 'db' of type 'SECRET' in namespace 'shop', Updated 'web' of type 'Deployment' in namespace 'shop'",
			"Warning RolloutFailed",
		}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Reloader.On = true
			s.workload(tt.workload, auto, reads("secret/db", "configmap/app"))
			s.begin("secret/db", "configmap/app")
			tt.happens(s)
			s.pass(2 * time.Minute)
			var got []string
			for _, event := range s.kubernetesEvents() {
				text := event.Type + " " + event.Reason
				if event.Reason == "Reloaded" || event.Reason == "ReloadFail" {
					text += " " + event.Message
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				s.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
