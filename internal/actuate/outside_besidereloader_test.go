//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// Reloader is taken to have finished when it has rolled nothing for five seconds, and a change waits a minute for that at most.
func TestWorkloadsAreLeftToReloaderWhileItRolls(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Reloader = true
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

		// It has rolled nothing for long.
		s.pass(time.Minute)
		change("secret/db")
		s.settle()
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

		// It has long rolled nothing in the namespace, but it does so in another one.
		s.delete("api")
		s.pass(11 * time.Minute)
		s.reloaderRolls("office/web", "secret/db")
		change("secret/db")
		s.settle()
		s.wantRolls("web")
	})
}

func TestAChangeThatIsLeftToReloaderIsRolledWhenReloaderDoesNot(t *testing.T) {
	for _, tt := range []struct {
		name        string
		reloader    bool
		rolls, told []string
	}{
		{"Reloader rolls it", true, nil, []string{"web skipped pods-newer"}},
		{"Reloader does not", false, []string{"web"}, []string{"web started content-changed", "web completed rolled-out"}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Reloader = true
			earlier := reloadedAt(time.Now().Add(-time.Hour), "secret/db")
			s.workload("web", auto, reads("secret/db"), earlier)
			s.workload("peer", auto, reads("secret/other"), earlier)
			s.begin("secret/db", "secret/other")
			s.reloaderRolls("peer", "secret/other")
			s.rotate("two")
			s.wantTold()
			if tt.reloader {
				s.reloaderRolls("web", "secret/db")
				s.pass(time.Second)
				s.wantTold(tt.told...) // It is decided at once.
				tt.told = nil
			}
			s.pass(time.Minute)
			s.wantRolls(tt.rolls...)
			s.wantTold(tt.told...)
		})
	}
}
