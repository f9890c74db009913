package openbao

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAStoreIsPolledAtTheIntervalAndSoonAfterRequests(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/detailed-metadata?scan", http.StatusOK, scanned)
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		for _, step := range []struct {
			wait  time.Duration
			polls int
		}{{wait: 50 * time.Second, polls: 1}, {wait: 20 * time.Second, polls: 2}, {wait: 10 * time.Second, polls: 2}} {
			after(step.wait)
			if got := store.times("secret/detailed-metadata?scan"); got != step.polls {
				t.Errorf("polled %d times, want %d", got, step.polls)
			}
		}
		for range 100 {
			r.feed.pipelines[0].intake.miss(t.Context(), dropped)
		}
		after(10 * time.Second)
		if got := store.times("secret/detailed-metadata?scan"); got != 3 && got != 4 {
			t.Errorf("polled %d times, want once more, or twice where it was asked for meanwhile", got)
		}
	})
}

func TestFailedPollsAreRepeatedLessAndLessOften(t *testing.T) {
	store := newFakeStore(kv2)
	begun := time.Time{}
	var tries []time.Duration
	store.do("secret/detailed-metadata?scan", func(*http.Request) (int, string) {
		if begun.IsZero() {
			begun = time.Now()
		}
		tries = append(tries, time.Since(begun))
		if len(tries) < 10 {
			// The store is down.
			return 0, ""
		}
		return http.StatusOK, scanned
	})
	inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
		after(6 * time.Minute)
		var gaps []time.Duration
		for i := range tries[1:] {
			gaps = append(gaps, tries[i+1]-tries[i]-minGap)
		}
		for i, want := range []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
			time.Minute, time.Minute, time.Minute,
		} {
			if gaps[i] < want || gaps[i] > want+want/10 {
				t.Errorf("%v between two tries, want %v or up to a tenth more; all: %v", gaps[i], want, gaps)
			}
		}
		if len(r.seen()) != 3 || r.feed.Ready() != nil {
			t.Errorf("not read at last: %v", r.feed.Ready())
		}
		if log := r.log.String(); strings.Count(log, "cannot be read") != 1 || strings.Count(log, "can be read again") != 1 {
			t.Errorf("want one line for the fault, and one for its end:\n%s", log)
		}
		if failed, worked := r.count(t, "keyturn.openbao.polls", "failure"), r.count(t, "keyturn.openbao.polls", "success"); failed != 9 || worked < 1 {
			t.Errorf("%d failed and %d worked", failed, worked)
		}
	})
}

// KeyturnStoreFailing needs a failure within the last hour.
func TestFailedPollsAreRepeatedSeveralTimesAnHour(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/detailed-metadata?scan", http.StatusServiceUnavailable, forbidden)
	inBubble(t, withToken+"{interval: 6h, mounts: [secret]}}]", store, nil, func(t *testing.T, r *rig) {
		after(30 * time.Minute)
		for hour := range 12 {
			failed := r.count(t, "keyturn.openbao.polls", "failure")
			after(time.Hour)
			if more := r.count(t, "keyturn.openbao.polls", "failure") - failed; more < 3 || more > 4 {
				t.Errorf("%d polls have failed in hour %d, want 3 or 4", more, hour+1)
			}
		}
	})
}

func TestAFeedIsReadyWhetherAStoreCanBeReadOrNot(t *testing.T) {
	for _, test := range []struct {
		name string
		scan int // the status of the answer, 0 for none
	}{
		{name: "a store that is down", scan: 0},
		{name: "a mount that may not be read", scan: http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			slowly := func(status int, body string) func(*http.Request) (int, string) {
				return func(*http.Request) (int, string) {
					<-time.After(5 * time.Second)
					return status, body
				}
			}
			store.do("sys/internal/ui/mounts", slowly(http.StatusOK, `{"data":{"secret":`+kv2+`}}`))
			store.do("secret/detailed-metadata?scan", slowly(test.scan, `{"errors":["no"]}`))
			store.do("secret/metadata?list", slowly(test.scan, `{"errors":["no"]}`))
			inBubble(t, pollSecret, store, nil, func(t *testing.T, r *rig) {
				after(time.Second)
				if err := r.feed.Ready(); err == nil || err.Error() != "store main: not polled yet" {
					t.Errorf("before the store has answered: %v", err)
				}
				after(30 * time.Second)
				if err := r.feed.Ready(); err != nil {
					t.Error(err)
				}
				if r.count(t, "keyturn.openbao.polls", "failure") == 0 || !strings.Contains(r.log.String(), "store cannot be read") {
					t.Errorf("the failure is not counted and logged:\n%s", r.log)
				}
			})
		})
	}
}

// A request that is not answered takes until its timeout. If each path of a poll took that long, a poll would fail after most of an hour, and rest for
// as long.
func TestAStoreIsPolledSoonAfterAnOutage(t *testing.T) {
	const paths, outage = 1000, 45 * time.Minute
	store := newFakeStore(kv2)
	var down atomic.Bool
	unlessDown := func(body string) func(*http.Request) (int, string) {
		return func(*http.Request) (int, string) {
			if down.Load() {
				<-time.After(10 * time.Second)
				return 0, ""
			}
			return http.StatusOK, body
		}
	}
	references := make([]Reference, 0, paths)
	for i := range paths {
		name := fmt.Sprintf("k%d", i)
		references = append(references, referenceTo(events.RootNamespace, "secret", name))
		store.do("secret/metadata/"+name, unlessDown(metadataOf(1, "2020-01-01T00:00:00Z")))
	}
	inBubble(t, pollReferenced, store, referring(references...), func(t *testing.T, r *rig) {
		after(5 * time.Minute)
		down.Store(true)
		after(outage)
		down.Store(false)
		if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed < 20 {
			t.Errorf("%d polls have failed within %v, want one at least every two minutes", failed, outage)
		}
		read := store.times("secret/metadata/k999")
		after(2 * time.Minute)
		if store.times("secret/metadata/k999") == read {
			t.Error("the store is not polled two minutes after the outage")
		}
	})
}
