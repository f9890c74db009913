//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// forbidden is how an API server refuses a patch for good, for what an admission plugin says.
func forbidden(why string) error {
	return apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New(why))
}

func TestLedgerARefusalThatEnds(t *testing.T) {
	// refusing refuses the patches of web, lets a workload roll, and accepts patches again half an hour after something has happened.
	refusing := func(refusal error, happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.atRest("secret/db")
			s.refuse("web", refusal)
			s.set("secret/db", "password", "two")
			happens(s)
			s.rest()
			s.refuse("web", nil)
			s.pass(30 * time.Minute)
		}
	}
	tenMinutes := func(s *scene) { s.pass(10 * time.Minute) }
	testFixtures(t, []fixture{
		{
			name: "over a change of the leader while it is tried rolls what it has refused",
			play: refusing(forbidden("it is Friday"), func(s *scene) { s.pass(10 * time.Second); s.restart(); tenMinutes(s) }),
			want: rolled("web"),
		},
		{
			name: "over a change of the leader after it was told rolls what it has refused",
			play: refusing(forbidden("it is Friday"), func(s *scene) { tenMinutes(s); s.restart(); tenMinutes(s) }),
			want: rolled("web"),
		},
	})
}

func TestLedgerARefusalIsTold(t *testing.T) {
	refused := func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.atRest("secret/db")
		s.refuse("web", forbidden("it is Friday"))
		s.set("secret/db", "password", "two")
	}
	testFixtures(t, []fixture{
		{
			name: "and not again by a leader that begins after that",
			play: func(s *scene) { refused(s); s.rest(); s.restart(); s.pass(time.Hour) },
		},
		{
			name: "by the next leader, if it was not before",
			play: func(s *scene) { refused(s); s.pass(10 * time.Second); s.restart(); s.pass(time.Hour) },
			want: ends{told: "web failed patch-denied"},
		},
		{
			name: "of each content",
			play: func(s *scene) {
				refused(s)
				s.rest()
				s.set("secret/db", "password", "three")
				s.pass(time.Hour)
			},
			want: ends{told: "web failed patch-denied"},
		},
		{
			name: "and then holds up no higher wave",
			play: func(s *scene) {
				s.workload("api", auto, annotated("keyturn.dev/wave", "1"), reads("secret/db"))
				refused(s)
				s.pass(20 * time.Second)
				s.wantRolls()
				s.pass(11 * time.Minute)
			},
			want: ends{
				rolls: "api",
				told:  "api held lower-wave; api started content-changed; api completed rolled-out; web failed patch-denied",
			},
		},
		{
			name: "and then holds up no higher wave over a change of the leader",
			play: func(s *scene) {
				s.workload("api", auto, annotated("keyturn.dev/wave", "1"), reads("secret/db", "secret/api"), onHold)
				s.observe("secret/api")
				refused(s)
				s.rest()
				s.restartFor(10 * time.Second) // It is refused once more by then.
				s.soFar()
				s.edit("api", letGo)
				s.pass(10 * time.Second)
			},
			want: rolled("api"),
		},
	})
}
