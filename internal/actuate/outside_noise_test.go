//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// beat is how often what changes all the time does: a little more seldom than a debounce window ends.
const beat = 1100 * time.Millisecond

// wantRolledBetween wants a workload, and no other, to have been rolled so often since a want compared it.
func (s *scene) wantRolledBetween(least, most int, name string) {
	s.Helper()
	rolled := s.whoRolled()
	if n := len(rolled); n < least || n > most || slices.ContainsFunc(rolled, func(other string) bool { return other != name }) {
		s.Errorf("after %s, these are rolled: %q; want %s, %d to %d times", s.elapsed(), rolled, name, least, most)
	}
}

// A controller writes two keys of a Secret, and another one all of them again, for a minute. Then the password changes, in the same way.
func TestWhoWritesASecretAgainAndAgainDelaysNobodyWhoReadsAnotherKey(t *testing.T) {
	two := func(password string) map[string]string {
		return map[string]string{"user": "results", "password": password}
	}
	eight := func(password string) map[string]string {
		data := two(password)
		for _, key := range []string{"host", "port", "verifier", "dbname", "jdbc-uri"} {
			data[key] = key
		}
		data["uri"] = "postgres://results:" + password + "@db"
		return data
	}
	play(t, func(s *scene) {
		s.workload("password-alone", auto, reads("secret/db#password"))
		s.workload("uri-alone", auto, reads("secret/db#uri"))
		s.workload("everything", auto, reads("secret/db"))
		s.find("secret/db", eight("one"))
		s.startFor(time.Minute)
		for range 30 {
			s.publish("secret/db", two("one"))
			s.pass(beat)
			s.publish("secret/db", eight("one"))
			s.pass(beat)
		}
		s.pass(25 * time.Second)
		s.wantRolledBetween(1, 7, "everything")
		s.wantContent("everything", "secret/db")

		s.publish("secret/db", two("two"))
		s.pass(beat)
		s.wantRolls("password-alone")
		s.publish("secret/db", eight("two"))
		s.pass(10 * time.Second)
		s.wantRolls("everything", "uri-alone")
		s.wantRecord("everything", "secret/db")
		s.pass(10 * time.Minute)
		s.wantRolls()
	})
}

// Whatever changes all the time, what does not is not delayed for long.
func TestAKeyThatTookNoPartInTheNoiseIsNotDelayedByIt(t *testing.T) {
	const soon = 5 * time.Second
	for _, tt := range []struct {
		name  string
		reads []string
		// noise is a source and a key that change all the time, and calm are those that change once.
		noise, calm [2]string
	}{
		{
			name: "another source", reads: []string{"secret/db", "configmap/app"},
			noise: [2]string{"configmap/app", "user"}, calm: [2]string{"secret/db", "password"},
		},
		{
			name: "another key, and all are read", reads: []string{"secret/db"},
			noise: [2]string{"secret/db", "ttl"}, calm: [2]string{"secret/db", "password"},
		},
		{
			name: "another key that is read", reads: []string{"secret/db#password", "secret/db#user"},
			noise: [2]string{"secret/db", "user"}, calm: [2]string{"secret/db", "password"},
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			value := 0
			lasts := func(d time.Duration) {
				for end := time.Now().Add(d); time.Now().Before(end); value++ {
					s.set(tt.noise[0], tt.noise[1], strconv.Itoa(value))
					s.pass(beat)
				}
			}
			s.workload("web", auto, reads(tt.reads...))
			s.begin("secret/db", "configmap/app")
			lasts(100 * time.Second)
			s.wantRolledBetween(5, 7, "web")
			s.set(tt.calm[0], tt.calm[1], "two")
			changed := s.of(tt.calm[0]).published.ResourceVersion
			lasts(soon)
			s.wantRolls("web")
			s.wantRolledSince("web", tt.calm[0], changed)
			lasts(2 * time.Minute)
			s.wantRolledBetween(4, 8, "web")
		})
	}
}

// What a workload does not read does not prolong the window in which its own changes are gathered.
func TestAKeyThatIsNotReadDoesNotDelayOneThatIs(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db#password")
		s.set("secret/db", "password", "two")
		for value := range 4 {
			s.pass(300 * time.Millisecond)
			s.set("secret/db", "user", strconv.Itoa(value))
		}
		s.wantRolls("web")
	})
}

// An operator syncs one Secret after the other.
func TestManySourcesThatChangeOneAfterTheOtherAreAFewRolls(t *testing.T) {
	for _, tt := range []struct {
		name        string
		calm        aspect
		least, most int
	}{
		{name: "by default", calm: auto, least: 3, most: 5},
		{name: "with an interval", calm: annotated(workload.AnnotationMinInterval, "1m"), least: 2, most: 2},
	} {
		playOf(t, tt.name, func(s *scene) {
			var sources []string
			for i := range 12 {
				sources = append(sources, fmt.Sprintf("secret/s%02d", i))
			}
			s.workload("web", auto, tt.calm, reads(sources...))
			s.begin(sources...)
			for _, source := range sources {
				s.set(source, "password", "two")
				s.pass(2 * time.Second)
			}
			s.pass(75 * time.Second)
			s.wantRolledBetween(tt.least, tt.most, "web")
			for _, source := range sources {
				s.wantRecord("web", source)
			}
			s.pass(10 * time.Minute)
			s.wantRolls()
		})
	}
}

// wantRolledSince wants the record of a workload to have a version of a source, or a later one.
func (s *scene) wantRolledSince(name, source, version string) {
	s.Helper()
	entry := s.recordOf(name)[sourceNamed(source).String()]
	_, rest, _ := strings.Cut(entry, "@")
	got, _, _ := strings.Cut(rest, "/")
	if events.CompareVersions(got, version) < 0 {
		s.Errorf("after %s, the record of %s says of %s: %q, want version %s or later", s.elapsed(), name, source, entry, version)
	}
}
