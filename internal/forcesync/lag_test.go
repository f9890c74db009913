package forcesync

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

const salted = ", target: {template: {data: {auth: '{{ htpasswd .user .password }}'}}}"

// standby is the server of the store that the operator reads: it answers with what was there some time ago.
type standby struct {
	*bed
	lag      time.Duration
	declared time.Duration // as the lag of the store
	salts    map[string]bool
	salt     int
	writes   []time.Time // of the versions from 2 on
}

// behind has the operator read a server that lags behind.
func (b *bed) behind(lag, declared time.Duration) *standby {
	s := &standby{bed: b, lag: lag, declared: declared, salts: make(map[string]bool)}
	b.read = func(name types.NamespacedName) string {
		content := strconv.Itoa(s.versionAt(time.Now().Add(-s.lag)))
		if s.salts[name.Name] {
			s.salt++
			content += " salt " + strconv.Itoa(s.salt)
		}
		return content
	}
	return s
}

func (s *standby) versionAt(at time.Time) int {
	version := 1
	for _, written := range s.writes {
		if !written.After(at) {
			version++
		}
	}
	return version
}

// rotated writes the next version of shop/db, and returns its event.
func (s *standby) rotated() events.Change {
	s.with(func() { s.writes = append(s.writes, time.Now()) })
	return rotation("shop/db", int64(1+len(s.writes)), func(c *events.Change) {
		c.ResourceVersion, c.Store.LagSeconds = strconv.FormatInt(time.Now().UnixNano(), 10), int64(s.declared/time.Second)
	})
}

// mustHave checks which version an ExternalSecret has written.
func (s *standby) mustHave(name string, version int) {
	s.Helper()
	s.with(func() {
		if got, _, _ := strings.Cut(s.written[types.NamespacedName{Namespace: "shop", Name: name}], " "); got != strconv.Itoa(version) {
			s.Errorf("%s has version %s, want %d", name, got, version)
		}
	})
}

// resume has the actuator, which is a new one, find the last event of the source.
func (b *bed) resume(change events.Change) {
	b.ask(func() { b.y.Resume(b.Context(), change, trace.SpanFromContext(b.Context()), &event{}) })
}

func TestEachVersionOfAStoreThatLagsArrives(t *testing.T) {
	const role = ", dataFrom: [{extract: {key: creds/shop}, sourceRef: {storeRef: {name: roles, kind: ClusterSecretStore}}}]"
	for _, test := range []struct {
		name, spec    string
		salts         bool
		lag           time.Duration
		suffixes      []string // of the annotation, for each version
		outcome, told string
	}{
		{name: "at the second sync", lag: 8 * time.Second, suffixes: []string{"", "-r3"}, outcome: "db completed synced"},
		{name: "at the second sync also after less than that", lag: time.Second, suffixes: []string{"", "-r3"}, outcome: "db completed synced"},
		{
			name: "at the only sync of a template with a salt", spec: salted, salts: true, lag: 5 * time.Second, suffixes: []string{"-r3"},
			outcome: "db completed synced-once-template",
			told:    "because htpasswd in its template has another result at each sync; with the result in the store",
		},
		{
			name: "at the only sync of what reads a lease, too", spec: role, salts: true, lag: 2 * time.Second, suffixes: []string{"-r3"},
			outcome: "db completed synced-once-engine", told: "because it reads an engine other than KV",
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			s := b.behind(test.lag, test.lag)
			s.salts["db"] = test.salts
			b.secret("db", "shop/db", test.spec)
			b.start()
			for version := 2; version < 9; version++ {
				e := b.deliver(b.Context(), s.rotated())
				b.pass(test.lag - 10*time.Millisecond)
				b.want("outcomes before the end of the lag", b.outcomes(), nil)
				b.pass(2 * time.Second)
				b.mustSettle(e)
				s.mustHave("db", version)
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				var patches []string
				for _, suffix := range test.suffixes {
					patches = append(patches, fmt.Sprintf("db main/root/secret/shop/db/%d%s", version, suffix))
				}
				b.want("patches", b.taken(), patches)
				if told := b.warnings(); len(told) > 0 != (test.told != "") || test.told != "" && !strings.Contains(told[0], test.told) {
					b.Errorf("told %q, want %q", told, test.told)
				}
				b.pass(30 * time.Second)
			}
		})
	}
}

func TestWhatANeighbourGotSparesNoReader(t *testing.T) {
	inBed(t, func(b *bed) {
		s := b.behind(5*time.Second, 0)
		s.salts["salted"] = true
		b.secret("team/salted", "shop/db", salted)
		b.secret("db", "shop/db", "")
		b.start()
		for version := 2; version < 11; version++ {
			b.deliver(b.Context(), s.rotated())
			b.pass(30 * time.Second)
			s.mustHave("db", version)
			b.want("outcomes", b.outcomes(), []string{"db completed synced", "salted completed synced"})
		}
	})
}

func TestTheNextLeaderMakesTheSecondSync(t *testing.T) {
	const lag = 8 * time.Second
	for _, test := range []struct {
		name          string
		before, until time.Duration // how long there is a leader, and when there is the next one, after the write
		spec          string
		again         []string
	}{
		{name: "at its time", before: time.Second, until: 3 * time.Second, again: []string{"db " + secondVersion + "-r3"}},
		{name: "late, if there was no leader before", before: time.Second, until: time.Minute, again: []string{"db " + secondVersion + "-r3"}},
		{name: "also if that is the only one", spec: salted, before: time.Second, until: 3 * time.Second, again: []string{"db " + secondVersion + "-r3"}},
		{name: "not if it is made already", before: 12 * time.Second, until: 13 * time.Second},
	} {
		runInBed(t, test.name, func(b *bed) {
			s := b.behind(lag, lag)
			b.secret("db", "shop/db", test.spec)
			b.start()
			change := s.rotated()
			b.deliver(b.Context(), change)
			b.pass(test.before)
			b.taken()
			outcomes := b.outcomes()
			b.stop()
			<-time.After(test.until - test.before)
			b.start()
			b.resume(change)
			b.pass(20 * time.Second)
			s.mustHave("db", 2)
			b.want("patches of the next leader", b.taken(), test.again)
			if outcomes = append(outcomes, b.outcomes()...); len(outcomes) != 1 || !strings.HasPrefix(outcomes[0], "db completed synced") {
				b.Errorf("outcomes: %q", outcomes)
			}
		})
	}
}

func TestTheNextLeaderTellsThatTheSecondSyncDoesNotCome(t *testing.T) {
	inBed(t, func(b *bed) {
		s := b.behind(8*time.Second, time.Minute)
		b.secret("db", "shop/db", "")
		b.start()
		change := s.rotated()
		b.deliver(b.Context(), change)
		b.pass(2 * time.Second)
		b.with(func() { b.deaf["db"] = true })
		b.pass(time.Minute)
		b.want("patches", b.taken(), []string{"db " + secondVersion, "db " + secondVersion + "-r3"})
		b.stop()
		<-time.After(syncTimeout - 55*time.Second) // The second sync has not had that long yet.
		b.start()
		b.resume(change)
		b.pass(syncTimeout + time.Second)
		b.want("outcomes", b.outcomes(), []string{"db failed timed-out"})
	})
}

func TestTheFirstAnswerOfAStoreThatLagsIsNoProof(t *testing.T) {
	for _, test := range []struct {
		name  string
		first time.Duration // how far behind the server is that answers first; the others alternate
	}{
		{name: "if it is the old version", first: 8 * time.Second},
		{name: "if it is the new one"},
	} {
		runInBed(t, test.name, func(b *bed) {
			s := b.behind(0, 8*time.Second)
			read := b.read
			s.lag = test.first
			b.read = func(name types.NamespacedName) string {
				defer func() { s.lag = 8*time.Second - s.lag }()
				return read(name)
			}
			b.secret("db", "shop/db", "")
			b.start()
			e := b.deliver(b.Context(), s.rotated())
			b.pass(7 * time.Second)
			if done, _ := b.isSettled(e); done {
				b.Error("it is done with before the end of the lag")
			}
			b.pass(10 * time.Second)
			b.mustSettle(e)
			s.mustHave("db", 2)
			b.want("outcomes", b.outcomes(), []string{"db completed synced"})
		})
	}
}

func TestAChangeThatIsFoundAfterTheLagIsReadOnce(t *testing.T) {
	inBed(t, func(b *bed) {
		s := b.behind(8*time.Second, 8*time.Second)
		b.secret("db", "shop/db", "")
		b.secret("salted", "shop/db", salted)
		b.start()
		change := s.rotated()
		b.pass(time.Minute)
		change.Time = time.Now() // of the poll
		e := b.deliver(b.Context(), change)
		b.pass(time.Second)
		b.mustSettle(e)
		s.mustHave("db", 2)
		s.mustHave("salted", 2)
		b.want("patches", b.taken(), []string{"db " + secondVersion + "-r3", "salted " + secondVersion + "-r3"})
		b.want("outcomes", b.outcomes(), []string{"db completed synced", "salted completed synced"})
	})
}

func TestAnUndeletionIsAsOldAsItsEvent(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 500, time.UTC)
	change := rotation("shop/db", 2, func(c *events.Change) { c.Time, c.Store.LagSeconds = now, 8 })
	s := &pendingSync{change: change}
	if got, want := s.lagEnd(), time.Unix(0, 1002).Add(clockMargin+8*time.Second); got.Before(want) || got.Sub(want) >= time.Second {
		t.Errorf("a version of %s: got %s, want the next second after %s", time.Unix(0, 1002), got, want)
	}
	s.change.Store.Operation = "undelete"
	if got, want := s.lagEnd(), now.Truncate(time.Second).Add(9*time.Second); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatIsWrittenFasterThanTheLagIsSyncedAllTheSame(t *testing.T) {
	inBed(t, func(b *bed) {
		s := b.behind(8*time.Second, 8*time.Second)
		s.salts["salted"] = true
		b.secret("db", "shop/db", "")
		b.secret("salted", "shop/db", salted)
		b.start()
		for range 12 {
			b.deliver(b.Context(), s.rotated())
			b.pass(5 * time.Second)
		}
		s.with(func() {
			for _, name := range []string{"db", "salted"} {
				if got := s.written[types.NamespacedName{Namespace: "shop", Name: name}]; got == "1" || strings.HasPrefix(got, "1 ") {
					t.Errorf("%s was not synced within a minute", name)
				}
			}
		})
		b.pass(30 * time.Second)
		s.mustHave("db", 13)
		s.mustHave("salted", 13)
		if outcomes := b.outcomes(); len(outcomes) != 2 {
			t.Errorf("outcomes: %q, want one each", outcomes)
		}
	})
}

func TestWhatChangesWhileItsTurnAfterTheLagIsAwaitedIsSynced(t *testing.T) {
	inBed(t, func(b *bed) {
		s := b.behind(0, time.Second)
		b.read = func(types.NamespacedName) string { return "1" } // The event of what db writes comes late, see below.
		for _, name := range []string{"a", "b", "c"} {
			b.secret(name, "other", "")
			b.deaf[name] = true
		}
		b.secret("db", "shop/db", "")
		b.start()
		e := b.deliver(b.Context(), s.rotated())
		b.pass(500 * time.Millisecond)
		b.rotate("other", 2, nil) // They take the slots of the namespace for two seconds.
		b.pass(time.Second)
		b.want("patches before the turn", b.taken()[:1], []string{"db " + secondVersion})
		b.deliver(b.Context(), events.Change{
			Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbChanged,
			UID: "s", ResourceVersion: "1", ChangedAt: "1",
		})
		b.pass(time.Minute)
		b.mustSettle(e)
		b.want("patches", b.taken(), []string{"db " + secondVersion + "-r3"})
		b.want("outcomes", b.outcomes(), []string{"db completed synced"})
	})
}

func TestWhatAClusterExternalSecretMakesIsSyncedAgainThroughIt(t *testing.T) {
	inBed(t, func(b *bed) {
		s := b.behind(8*time.Second, 8*time.Second)
		b.cluster(8)
		b.start()
		change := s.rotated()
		b.deliver(b.Context(), change)
		b.pass(3 * time.Second)
		b.stop()
		b.start()
		b.resume(change)
		b.pass(20 * time.Second)
		b.want("patches", b.taken(), []string{"all " + secondVersion, "all " + secondVersion + "-r3"})
		for i := range 8 {
			s.mustHave(fmt.Sprintf("child-%d", i), 2)
		}
		if got := len(b.outcomes()); got != 8 {
			t.Errorf("%d outcomes, want 8", got)
		}
	})
}
