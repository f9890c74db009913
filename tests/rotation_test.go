package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
)

// TestARotationInTheStoreReachesThePods is the main job of the secret store chain, by each of the ways in: nobody waits for
// the refresh interval of an hour.
func TestARotationInTheStoreReachesThePods(t *testing.T) {
	t.Parallel()
	for _, w := range []way{byHTTP, byPoll, byReference} {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			s := newStoreRig(t, w, programs.Options{})
			s.put("shop/db", "one")
			s.put("shop/mail", "one")
			s.externalSecret("db", "shop/db")
			s.externalSecret("mail", "shop/mail")
			s.reader("web", "db")
			s.reader("mailer", "mail")
			s.start()

			written := time.Now()
			s.put("shop/db", "two")
			changed := s.awaitContent("db", "two")
			s.awaitGeneration("web", 2)
			ready := time.Now()
			t.Logf("by %s: written, +%v Secret changed, +%v new pods ready", w, changed.Sub(written).Round(time.Millisecond),
				ready.Sub(written).Round(time.Millisecond))
			wantCause := "secret/db (password) by externalsecret/db for bao/root/secret/shop/db/2/"
			if cause := s.deployment("web").Spec.Template.Annotations["keyturn.dev/cause"]; !strings.HasPrefix(cause, wantCause) {
				t.Errorf("cause: got %q, want one that starts with %q", cause, wantCause)
			}

			s.put("shop/mail", "two")
			s.awaitContent("mail", "two")
			s.awaitGeneration("mailer", 2)
			if got := s.generations()["web"]; got != 2 {
				t.Errorf("generation of web, which reads another path: got %d, want 2", got)
			}
		})
	}
}
