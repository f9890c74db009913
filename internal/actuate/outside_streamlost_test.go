//go:build !race

package actuate_test

import (
	"testing"
	"time"
)

// If the stream loses a change, the watcher publishes it again.
func TestAChangeThatWaitsOutlivesItsStream(t *testing.T) {
	tests := []struct {
		name   string
		lose   func(*scene)
		leader func(*scene)
	}{
		{"which is emptied", func(s *scene) { s.loseEvents() }, func(*scene) {}},
		{"which is emptied, and its leader", func(s *scene) { s.loseEvents() }, func(s *scene) { s.restart() }},
		{"which is made anew", (*scene).remakeStream, func(*scene) {}},
		{"which is made anew, and its leader", (*scene).remakeStream, func(s *scene) { s.restart() }},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			s.workload("web", auto, onHold, reads("secret/db"))
			s.workload("other", auto, reads("secret/other"))
			s.begin("secret/other", "secret/db")
			s.set("secret/db", "password", "two")
			s.pass(11 * time.Minute)
			s.wantRolls()
			s.wantTold("web held on-hold")
			test.lose(s)
			test.leader(s)
			s.again("secret/other") // It gets a sequence that another event had.
			s.again("secret/db")
			s.pass(11 * time.Minute)
			s.wantWrites()
			s.told()
			s.edit("web", letGo)
			s.settle()
			s.wantWrites("web rolled")
			s.wantRecord("web", "secret/db")
			s.wantTold("web started content-changed", "web completed rolled-out")
			s.set("secret/other", "password", "two")
			s.settle()
			s.wantWrites("other rolled")
			s.told()
			s.restart()
			s.pass(time.Hour)
			s.wantNothing()
		})
	}
}
