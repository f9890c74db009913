//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// deadLetters returns all dead letters.
func (s *scene) deadLetters() []events.DeadLetter {
	s.Helper()
	const most = 100
	letters, err := s.bus.DeadLetters(s.Context(), most)
	if err != nil {
		s.Fatal(err)
	}
	return letters
}

// garble publishes something on the subject of a source that is no event.
func (s *scene) garble(name string) {
	s.Helper()
	if _, err := s.jetStream().Publish(s.Context(), events.Subject("demo", sourceNamed(name)), []byte("no event")); err != nil {
		s.Fatal(err)
	}
}

// Each leader reads it, and each reading of the stream has it.
func TestAnEventThatCannotBeReadIsDeadLetteredOnce(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		s.wantWrites("web recorded")
		s.garble("secret/db")
		s.pass(3 * time.Hour)
		s.restart()
		s.pass(3 * time.Hour)
		letters := s.deadLetters()
		if len(letters) != 1 || letters[0].Subject != events.Subject("demo", sourceNamed("secret/db")) || letters[0].Reason == "" {
			s.Errorf("the dead letters are %+v, want one", letters)
		}
		if got, _ := seen.measurements().value("keyturn.events.rejected", "", ""); got != 1 {
			s.Errorf("%d are counted, want 1", got)
		}
		s.wantNothing()
		s.rotate("two", "web")
		s.garble("secret/db")
		s.pass(time.Minute)
		if got := len(s.deadLetters()); got != 2 {
			s.Errorf("after another one there are %d dead letters, want 2", got)
		}
	})
}
