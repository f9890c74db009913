package workload

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

var (
	dbSecret = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	dbClass  = events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}
	dbPath   = events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "kv", Path: "shop/db, {1} at #2"}.Source()
)

// rolledFor returns a workload after a roll for a change that came at since.
func rolledFor(t *testing.T, w *Workload, source events.Source, since, at time.Time, keys ...string) *Workload {
	t.Helper()
	write := Write{
		Rolls: true, RolledAt: at, Changes: []Change{{Source: source, At: since, Since: since, Keys: keys}},
		Rolled: map[string]RolledFor{source.String(): {Fingerprint: "k0:1", Version: "1", UID: "u"}},
	}
	last, next := w.NextLast(write), w.rolls.and(at)
	next.often = w.streaksAfter(write)
	return readRolled(t, map[string]string{annotationRolls: next.text(), annotationLast: last.format()})
}

// readRolled reads web, to which the limit of the flag applies.
func readRolled(t *testing.T, annotations map[string]string) *Workload {
	t.Helper()
	return readAs(t, deployments, webDeployment("50", annotations), Reading{MaxRollsPerHour: 30})
}

func TestRollsInARowAreEndlessFromANumberOn(t *testing.T) {
	one := func(int) []string { return []string{"ttl"} }
	none := func(int) []string { return nil }
	tests := []struct {
		name   string
		source events.Source
		// keys are those that the i-th change is about.
		keys  func(i int) []string
		every time.Duration
		// want is after how many rolls the next one is delayed, zero if that never is.
		want int
	}{
		{"of a key", dbSecret, one, time.Minute, manyOfKey + 1},
		{"of two keys at once", dbSecret, func(int) []string { return []string{"a", "b"} }, time.Minute, manyOfKey + 1},
		{"of two keys by turns", dbSecret, func(i int) []string { return []string{strconv.Itoa(i % 2)} }, time.Minute, manyOfKeys},
		{"of a key that is another one each time", dbSecret, func(i int) []string { return []string{strconv.Itoa(i)} }, time.Minute, manyOfKeys},
		{"of a path in a store", dbPath, none, 9 * time.Minute, manyOfSource},
		{"of a class", dbClass, none, 27 * time.Second, manyOfClass},
		{"of a key that changes seldom", dbSecret, one, events.Soon, 0},
		{"of a class that changes seldom", dbClass, none, events.Soon, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, at, got := readRolled(t, nil), written, 0
			for i := 1; i <= 60 && got == 0; i++ {
				w = rolledFor(t, w, tt.source, at, at, tt.keys(i)...)
				if slow := w.Slowdown(tt.source, tt.keys(i+1), at.Add(time.Second)); !slow.Until.IsZero() {
					got = i
				}
				at = at.Add(tt.every)
			}
			if got != tt.want {
				t.Errorf("the next one is delayed after %d rolls, want %d: %s", got, tt.want, w.rolls.text())
			}
		})
	}
}

func TestTheDistanceOfEndlessRollsDoublesUpToAnHourAndEndsWithThem(t *testing.T) {
	w, at := readRolled(t, nil), written
	for range manyOfClass {
		at = at.Add(time.Minute)
		w = rolledFor(t, w, dbClass, at, at)
	}
	var told []bool
	for _, want := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour} {
		slow := w.Slowdown(dbClass, nil, at.Add(time.Minute))
		if got := slow.Until.Sub(at); got != want {
			t.Errorf("the distance is %s, want %s: %s", got, want, w.rolls.text())
		}
		told = append(told, slow.IsTold)
		since := at.Add(time.Minute)
		at = slow.Until
		w = rolledFor(t, w, dbClass, since, at)
	}
	testkit.WantEqual(t, "people were told before", []bool{false, true, true, true, true}, told)
	if slow := w.Slowdown(dbClass, nil, at.Add(time.Hour)); !slow.Until.IsZero() {
		t.Errorf("after an hour it waits until %s", slow.Until)
	}
	at = at.Add(time.Hour)
	w = rolledFor(t, w, dbClass, at, at)
	if slow := w.Slowdown(dbClass, nil, at.Add(time.Minute)); !slow.Until.IsZero() {
		t.Errorf("after a roll for a change that came later it waits until %s: %s", slow.Until, w.rolls.text())
	}
}

func TestWhoseRollsKeepNoDistance(t *testing.T) {
	const often = `40 since 2026-03-14T15:00:00Z {"secret/db#ttl":"12 at 2026-03-14T15:09:26Z"}`
	tests := []struct {
		name        string
		annotations map[string]string
		flag        int
		keys        []string
		now         time.Duration
		want        bool
	}{
		{name: "nobody else's", flag: 100, want: true},
		{name: "with another key", flag: 100, keys: []string{"password", "ttl"}},
		{name: "without a limit of rolls"},
		{name: "with a limit of its own", flag: 100, annotations: map[string]string{AnnotationMaxRollsPerHour: "50"}},
		{name: "with an interval of its own", flag: 100, annotations: map[string]string{AnnotationMinInterval: "0s"}},
		{name: "with a count of the future", flag: 100, now: -time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			on := map[string]string{annotationRolls: often}
			maps.Copy(on, tt.annotations)
			keys := tt.keys
			if keys == nil {
				keys = []string{"ttl"}
			}
			w, _ := Read(deployments, webDeployment("50", on), Reading{MaxRollsPerHour: tt.flag})
			if slow := w.Slowdown(dbSecret, keys, written.Add(tt.now)); slow.Until.IsZero() == tt.want {
				t.Errorf("it waits until %s, want that it waits: %t", slow.Until, tt.want)
			}
		})
	}
}

func TestARollThatIsRepeatedIsNoneInARow(t *testing.T) {
	const often = `3 since 2026-03-14T15:00:00Z {"secret/db":"3 at 2026-03-14T15:09:26Z"}`
	w := readRolled(t, map[string]string{annotationRolls: often})
	w.Reverted = map[string]RolledFor{"secret/db": {Fingerprint: "1:" + w.TemplateID(), Version: "1", UID: "u"}}
	if got := rolledFor(t, w, dbSecret, written, written, "ttl").rolls.often["secret/db"].count; got != 3 {
		t.Errorf("%d rolls are counted, want 3", got)
	}
}

func TestTheRollsInARowFitIntoTheirAnnotation(t *testing.T) {
	often := make(streaks)
	for i := range 200 {
		often[keyName("secret/db", fmt.Sprintf("%040d", i))] = streak{1, written}
	}
	often["secret/db"] = streak{30, written}
	text := rolls{count: 30, since: written, often: often}.text()
	read := parseRolls(text)
	if len(text) > 2000 || len(read.often) < 10 || read.often["secret/db"].count != 30 || read.count != 30 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func FuzzParseRolls(f *testing.F) {
	f.Add("30 since 2026-03-14T15:09:26Z")
	f.Add(`30 since 2026-03-14T15:09:26Z {"secret/db#ttl":"12 at 2026-03-14T15:09:26Z","secret/db":"x at y"}`)
	f.Add(`1 since 2026-03-14T15:09:26Z {"` + strings.Repeat("<", 300) + `":"1 at 9999-12-31T23:59:59-23:59"}`)
	f.Add(`1 since 2026-03-14T15:09:26Z {`)
	f.Fuzz(func(t *testing.T, text string) {
		read := parseRolls(text)
		if written := read.often.String(); len(written) > maxStreaks {
			t.Errorf("%q is written as %d bytes", text, len(written))
		}
		if again := parseRolls(read.text()); len(again.often) > len(read.often) {
			t.Errorf("%q has %d streaks, and then %d", text, len(read.often), len(again.often))
		}
		readRolled(t, map[string]string{annotationRolls: text}).Slowdown(dbSecret, []string{"ttl"}, written)
	})
}
