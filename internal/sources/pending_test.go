package sources

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// pendingTest runs a test of a queue in a bubble, in which time passes when every goroutine is blocked.
func pendingTest(t *testing.T, test func(t *testing.T, p *pendingSources)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPendingSources(time.Now)
		defer p.shutDown()
		test(t, p)
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func mustTake(t *testing.T, p *pendingSources, want events.Source) queueEntry {
	t.Helper()
	source, entry, ok := p.take()
	if !ok || source != want {
		t.Fatalf("took %s, %t, want %s", source, ok, want)
	}
	return entry
}

func TestPendingSourcesKeepTheTimeOfTheFirstNotice(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		began := time.Now()
		p.put(testSource, queueEntry{created: true})
		<-time.After(time.Second)
		p.add(testSource)
		if n := p.length(); n != 1 {
			t.Errorf("%d sources are queued, want one", n)
		}
		if entry := mustTake(t, p, testSource); !entry.at.Equal(began) || !entry.created {
			t.Errorf("got %+v, want the first time and created", entry)
		}
		p.done(testSource)
		p.add(testSource)
		if entry := mustTake(t, p, testSource); !entry.at.Equal(time.Now()) || entry.created {
			t.Errorf("after it was done: got %+v, want a new entry", entry)
		}
		p.done(testSource)
	})
}

func TestPendingSourcesPutAnEntryBackOnARetry(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		began := time.Now()
		p.add(testSource)
		for want := range 3 {
			entry := mustTake(t, p, testSource)
			if waited := time.Since(began); waited != retryFirst<<want-retryFirst {
				t.Errorf("try %d comes after %s", want, waited)
			}
			if !entry.at.Equal(began) || entry.created != (want > 0) {
				t.Errorf("try %d: got %+v, want the first time, and created since the first", want, entry)
			}
			p.retry(testSource, queueEntry{at: entry.at, created: true})
		}
		mustTake(t, p, testSource)
		p.done(testSource)
		p.add(testSource)
		before := time.Now()
		p.retry(testSource, mustTake(t, p, testSource))
		mustTake(t, p, testSource)
		if waited := time.Since(before); waited != retryFirst {
			t.Errorf("after a success the first retry comes after %s, want %s", waited, retryFirst)
		}
		p.done(testSource)
	})
}

func TestPendingSourcesAreQuietWhenAllThatWaitsIsARetry(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		if !isClosed(p.quiet()) {
			t.Error("an empty queue is not quiet")
		}
		p.add(testSource)
		p.add(otherSource)
		quiet := p.quiet()
		want := func(when string, closed bool) {
			t.Helper()
			synctest.Wait()
			if isClosed(quiet) != closed {
				t.Fatalf("%s: quiet %t, want %t", when, !closed, closed)
			}
		}
		want("two are queued", false)
		first := mustTake(t, p, testSource)
		want("one is in work", false)
		mustTake(t, p, otherSource)
		want("both are in work", false)
		p.done(otherSource)
		want("one is still in work", false)
		p.retry(testSource, first)
		want("one waits for a retry", true)

		mustTake(t, p, testSource)
		if quiet = p.quiet(); isClosed(quiet) {
			t.Error("it is quiet while a retry is in work")
		}
		p.done(testSource)
		want("the retry has succeeded", true)
	})
}

// The queue would keep a Certificate that is gone until its renewal, and a source until a turn that may come earlier.
func TestPendingSourcesComeBackAfterADelayThatIsBounded(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		for delay, want := range map[time.Duration]time.Duration{time.Second: time.Second, 60 * 24 * time.Hour: checkMost} {
			began := time.Now()
			p.AddAfter(testSource, delay)
			if !isClosed(p.quiet()) {
				t.Error("it waits for what comes later")
			}
			if entry := mustTake(t, p, testSource); time.Since(began) != want || !entry.at.Equal(time.Now()) {
				t.Errorf("after a delay of %s it came after %s with %+v", delay, time.Since(began), entry)
			}
			p.wait(testSource, queueEntry{}, delay)
			mustTake(t, p, testSource)
			if waited := time.Since(began); waited != 2*want {
				t.Errorf("after two delays of %s it came after %s", delay, waited)
			}
			p.done(testSource)
		}
	})
}

func TestPendingSourcesKeepHowAnObjectCameAndWent(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		first := objectOf(t, "u", 1, "one")
		p.put(testSource, queueEntry{created: true, first: first})
		p.add(testSource)
		p.put(testSource, queueEntry{gone: true})
		p.put(testSource, queueEntry{created: true, first: objectOf(t, "u", 2, "two")})
		for range 2 {
			entry := mustTake(t, p, testSource)
			if !entry.created || !entry.gone || entry.first != first {
				t.Errorf("got %+v, want created and gone, with the first object", entry)
			}
			p.add(testSource)
			p.retry(testSource, entry)
		}
	})
}

func TestPendingSourcesThatAreDroppedWaitForAChange(t *testing.T) {
	for _, created := range []bool{false, true} {
		pendingTest(t, func(t *testing.T, p *pendingSources) {
			began := time.Now()
			p.put(testSource, queueEntry{created: created})
			p.drop(testSource, mustTake(t, p, testSource))
			<-time.After(time.Hour)
			if n := p.length(); n != 0 || !isClosed(p.quiet()) {
				t.Fatalf("%d sources are queued, quiet %t", n, isClosed(p.quiet()))
			}
			p.add(testSource)
			if again := mustTake(t, p, testSource); again.created != created || again.at.Equal(began) != created {
				t.Errorf("got %+v, want created %t, and the first time if it was", again, created)
			}
			if at := p.publishedUntil(time.Now()); !at.Equal(time.Now()) {
				t.Errorf("published until %s: what cannot be published holds up what can", at)
			}
			p.done(testSource)
		})
	}
}
