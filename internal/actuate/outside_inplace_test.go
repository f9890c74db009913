//go:build !race

package actuate_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestPodsAreAskedToReloadWhenTheirFilesAreNewAndOnlyThenItIsRecorded(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(2 * time.Minute)
		s.settled("secret/db", "password", "two")
		s.wantTold("web held files-pending")
		s.pass(s.options.ReloadInPlace - 2*time.Second)
		// It changes again before the files are new.
		s.set("secret/db", "password", "three")
		s.pass(s.options.ReloadInPlace - time.Second)
		pods.wantAsked("web", 0)
		s.wantTold()
		s.pass(2 * time.Second)
		pods.wantAsked("web", 1)
		s.wantRolls()
		s.wantSaid("reloaded-in-place", "1 pod answered the request to reload at http://:9090/-/reload for secret/db (password)")
		s.wantTold("web completed reloaded-in-place")
		// It is recorded, so the next leader does not ask again.
		s.restartFor(time.Hour)
		s.wantNothing()
		pods.wantAsked("web", 1)
	})
}

func TestPodsThatHaveReloadedAreAskedAgainOnlyForALaterChange(t *testing.T) {
	for _, tt := range []struct {
		name  string
		later bool
		want  int
	}{{"not while the patch fails", false, 1}, {"for a change that came meanwhile", true, 2}} {
		playOf(t, tt.name, func(s *scene) {
			pods := s.beginInPlace(time.Nanosecond)
			s.refuse("web", apierrors.NewInternalError(errors.New("failed calling webhook")))
			s.settled("secret/db", "password", "two")
			pods.wantAsked("web", 1)
			if tt.later {
				s.set("secret/db", "password", "three")
			}
			s.pass(time.Minute)
			s.wantTold()
			s.refuse("web", nil)
			s.pass(2 * time.Minute)
			s.wantRolls()
			s.wantTold("web completed reloaded-in-place")
			pods.wantAsked("web", tt.want)
		})
	}
}

func TestPodsThatCannotBeAskedToReloadAreReplaced(t *testing.T) {
	for name, answer := range map[string]int{"they do not listen": refusing, "they do not take it": http.StatusInternalServerError} {
		playOf(t, name, func(s *scene) {
			pods := s.beginInPlace(time.Nanosecond)
			pods.answer("web", answer)
			s.rotate("two")
			s.pass(time.Minute)
			s.wantRolls("web")
			s.wantTold("web started content-changed", "web completed rolled-out")
			s.wantSaid("content-changed", "; not in place: not every pod confirmed the reload: pod web-1: ")
		})
	}
}

func TestAHoldStopsAReloadInPlaceBeforeTheFirstPodIsAsked(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(time.Nanosecond)
		client, hold := s.lastClient(), sync.OnceFunc(func() { s.edit("web", onHold) })
		s.intercept("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
			hold()
			takes(client, time.Second)
			return false, nil, nil
		})
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		pods.wantAsked("web", 0)
		s.wantTold("web held on-hold")
		s.edit("web", without(events.AnnotationHold))
		s.pass(time.Minute)
		pods.wantAsked("web", 1)
		s.wantTold("web completed reloaded-in-place")
	})
}

func TestWhoeverAsksForARollNowGetsARollout(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(2 * time.Minute)
		s.edit("web", annotated(workload.AnnotationRollNow, "1"))
		s.rotate("two", "web")
		s.wantSaid("content-changed", "; not in place: keyturn.dev/roll-now asks for a rollout")
		s.pass(time.Hour)
		pods.wantAsked("web", 0)
	})
}

func TestAChangeToRollForIsNotHeldUpByAnotherThatWaits(t *testing.T) {
	for _, tt := range []struct {
		name string
		// wait makes a change of configmap/app that waits, and held is what is told of that.
		wait func(s *scene)
		held []string
	}{
		{
			"for pods that start",
			func(s *scene) {
				s.set("configmap/app", "password", "two")
				s.edit("web", image("example.com/app:2"))
			}, nil,
		},
		{"for the end of the hold of its source", func(s *scene) {
			s.set("configmap/app", "password", "two", sourceHeld("migration"))
		}, []string{"web held on-hold"}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.beginReading("secret/db", "configmap/app")
			s.stall("web")
			tt.wait(s)
			s.pass(10 * time.Minute)
			s.wantRolls()
			s.wantTold(tt.held...)
			if len(tt.held) > 0 {
				s.wantLast("web", "held on-hold", "configmap/app: migration")
			}
			s.set("secret/db", "password", "two")
			s.pass(10 * time.Second)
			s.wantRolls("web")
			s.wantTold("web started content-changed", "web skipped up-to-date")
			if got := s.podAnnotation("web", events.AnnotationCause); got != "secret/db (password)" {
				s.Errorf("the cause is %q", got)
			}
			record := s.annotation("web", annotationRecord)
			for _, source := range []string{"secret/db", "configmap/app"} {
				if version := s.of(source).published.ResourceVersion; !strings.Contains(record, "@"+version+"/") {
					s.Errorf("the record is %s, want it with version %s of %s", record, version, source)
				}
			}
		})
	}
}
