package tests

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

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

func TestAWorkloadThatReadsTheStoreItselfRolls(t *testing.T) {
	t.Parallel()
	s := newStoreRig(t, byHTTP, programs.Options{
		ActuatorArgs: []string{grantStores(t, `- {namespaces: [test-*], store: bao, paths: [secret/shop]}`)},
	})
	s.put("shop/db", "one")
	s.put("else/db", "one")
	web := programs.NewDeployment(s.namespace, "web", 1, map[string]string{"keyturn.dev/roll-on": "openbao:secret/shop/*"})
	agent := programs.NewDeployment(s.namespace, "agent", 1, map[string]string{"keyturn.dev/roll-on": "auto"})
	agent.Spec.Template.Annotations = map[string]string{
		"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-inject-secret-db": "secret/data/shop/db",
	}
	other := programs.NewDeployment(s.namespace, "other", 1, map[string]string{"keyturn.dev/roll-on": "openbao:secret/shop/mail"})
	here := programs.NewDeployment(s.namespace, "here", 1, map[string]string{"keyturn.dev/roll-on": "openbao:bao:secret/shop/db"})
	elsewhere := programs.NewDeployment(s.namespace, "elsewhere", 1, map[string]string{"keyturn.dev/roll-on": "openbao:dev:secret/shop/db"})
	beyond := programs.NewDeployment(s.namespace, "beyond", 1, map[string]string{"keyturn.dev/roll-on": "openbao:secret/else/*"})
	for _, d := range []*appsv1.Deployment{web, agent, other, here, elsewhere, beyond} {
		s.deploy(d)
	}
	s.start()
	s.put("else/db", "two")
	s.put("shop/db", "two")
	for _, name := range []string{"web", "agent", "here"} {
		s.awaitGeneration(name, 2)
	}
	for _, name := range []string{"other", "elsewhere", "beyond"} {
		if got := s.generations()[name]; got != 1 {
			t.Errorf("generation of %s: got %d, want 1", name, got)
		}
	}
}
