//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

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
		{
			"for the end of the hold of its source",
			func(s *scene) {
				s.set("configmap/app", "password", "two", sourceHeld("migration"))
			},
			[]string{"web held source-on-hold"},
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", auto, reads("secret/db", "configmap/app"))
			s.begin("secret/db", "configmap/app")
			s.stall("web")
			tt.wait(s)
			s.pass(10 * time.Minute)
			s.wantRolls()
			s.wantTold(tt.held...)
			if len(tt.held) > 0 {
				s.wantLast("web", "held source-on-hold", "configmap/app: migration")
			}
			s.set("secret/db", "password", "two")
			s.pass(10 * time.Second)
			s.wantRolls("web")
			s.wantTold("web started content-changed", "web skipped pods-newer")
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
