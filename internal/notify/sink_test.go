package notify

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testkit"
)

// service is a chat service in the test process, so that it shares the fake clock of the test.
type service func(*http.Request) (*http.Response, error)

func (s service) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func answer(status int, header http.Header) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

// served returns a sink that sends to the service.
func served(t *testing.T, perMinute int, s service) (*sink, *counters, *testkit.Log) {
	t.Helper()
	sink, err := newSink(sinkConfig{Name: "team", Type: typeSlack, URL: "https://x.example/" + secretPath, Rate: rateConfig{PerMinute: perMinute}}, newClient(s))
	testkit.Must(t, err)
	counters, log := newCounters(), &testkit.Log{}
	sink.log = log.Logger()
	if sink.metrics, err = newMetrics(counters.meter()); err != nil {
		t.Fatal(err)
	}
	return sink, counters, log
}

// seconds returns the requests' times as whole seconds since start. Jitter adds less than a second in total.
func seconds(times []time.Time, start time.Time) []int {
	var got []int
	for _, at := range times {
		got = append(got, int(at.Sub(start)/time.Second))
	}
	return got
}

func TestASinkIsTriedAgainWithAGrowingDelayUntilItTakesTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, asked := time.Now(), []time.Time{}
		sink, counters, log := served(t, maxPerMinute, func(r *http.Request) (*http.Response, error) {
			asked = append(asked, time.Now())
			switch len(asked) {
			case 1: // A service that hangs is left after ten seconds.
				<-r.Context().Done()
				return nil, r.Context().Err()
			case 2, 3:
				return nil, errors.New("connection refused")
			case 4:
				return answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"100"}})
			}
			return answer(http.StatusOK, nil)
		})
		if err := sink.send(t.Context(), outcome(events.VerbFailed, "shop", "r1"), 1); err != nil {
			t.Errorf("got %v, want the message to be acknowledged", err)
		}
		testkit.WantEqual(t, "seconds at which it was tried", []int{0, 11, 13, 17, 117}, seconds(asked, start))
		testkit.WantEqual(t, "metrics", map[string]int64{"team/slack/sent": 1, "team/slack/retried": 4}, counters.results(t))
		if strings.Contains(log.String(), secretPath) {
			t.Errorf("the log quotes the address: %s", log)
		}
	})
}

// HISTORY keeps an outcome that exceeds the share of its namespace for an hour only, and drops its oldest when it is full.
func TestAMessageThatTheStreamDropsWhileItIsParkedIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, counters, log := served(t, maxPerMinute, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var oldest atomic.Uint64
		var looking sync.WaitGroup
		looking.Go(func() {
			sink.lookForLost(ctx, func(context.Context) (first, last uint64, err error) { return oldest.Load(), 9, nil })
		})
		end := time.Now().Add(time.Hour)
		sink.parked.add(2, end)
		sink.parked.add(3, time.Time{})
		sink.parked.add(4, end)
		sink.parked.remove(4)
		lost := func(after time.Duration, want int64) {
			t.Helper()
			<-time.After(after)
			if got := counters.results(t)["team/slack/lost"]; got != want {
				t.Errorf("%d are counted as lost, want %d", got, want)
			}
		}
		lost(time.Hour+expiryGrace-time.Second, 0) // The stream may still have it.
		lost(lookInterval+time.Second, 1)
		lost(24*time.Hour, 1)
		oldest.Store(4)
		lost(lookInterval+time.Second, 2)
		if !strings.Contains(log.String(), "notifications lost") {
			t.Errorf("the log does not say so:\n%s", log)
		}
		cancel()
		looking.Wait()
	})
}

func TestAMessageThatIsNotTakenIsParkedAndAtLastGivenUp(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		status, deliveries, tries int
		err                       error
		log, result               string
	}{
		{"it is parked after a few tries, so that the others go on", 500, 1, maxTries, errParked, "notification parked", "parked"},
		{"it is parked again after one try", 500, maxDeliveries - 1, 1, errParked, "notification parked", "parked"},
		{"it is given up after days", 500, maxDeliveries, 1, nil, "notification given up", "given-up"},
		{"it is not repeated after it was refused", 404, 1, 1, nil, "level=ERROR msg=\"notification refused\"", "refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				sink, counters, log := served(t, maxPerMinute, func(*http.Request) (*http.Response, error) {
					tries++
					return answer(tt.status, nil)
				})
				if err := sink.send(t.Context(), outcome(events.VerbFailed, "shop", "r1"), tt.deliveries); !errors.Is(err, tt.err) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				results := counters.results(t)
				if tries != tt.tries || results["team/slack/"+tt.result] != 1 || results["team/slack/retried"] != int64(tries-1) {
					t.Errorf("it took %d tries, want %d: %v", tries, tt.tries, results)
				}
				if !strings.Contains(log.String(), tt.log) || strings.Contains(log.String(), secretPath) {
					t.Errorf("the log is %s", log)
				}
			})
		})
	}
}

func TestAMessageIsParkedForLongerEachTime(t *testing.T) {
	sink, _, _ := served(t, maxPerMinute, nil)
	sink.parking.Jitter = 0
	var total time.Duration
	for i := range maxDeliveries - 1 {
		total += sink.parkedFor(i + 1)
	}
	if days := total.Hours() / 24; sink.parkedFor(1) != time.Minute || days < 2.5 || days > 3.5 {
		t.Errorf("it is parked for %s first, and given up after %.1f days, want about 3", sink.parkedFor(1), days)
	}
}

func TestASinkGetsNoMoreThanItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, asked := time.Now(), []time.Time{}
		sink, _, _ := served(t, 30, func(*http.Request) (*http.Response, error) {
			asked = append(asked, time.Now())
			return answer(http.StatusOK, nil)
		})
		for range burst + 3 {
			if err := sink.send(t.Context(), outcome(events.VerbFailed, "shop", "r1"), 1); err != nil {
				t.Error(err)
			}
		}
		want := append(make([]int, burst), 2, 4, 6)
		testkit.WantEqual(t, "seconds of the messages", want, seconds(asked, start))
	})
}

func TestASinkStopsAtOnceAndGivesTheMessageBack(t *testing.T) {
	for name, serve := range map[string]service{
		"while a request is under way": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"while it waits for the next try": func(*http.Request) (*http.Response, error) { return answer(http.StatusServiceUnavailable, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink, _, _ := served(t, maxPerMinute, serve)
				ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
				defer cancel()
				start := time.Now()
				err := sink.send(ctx, outcome(events.VerbFailed, "shop", "r1"), 1)
				if took := time.Since(start); !errors.Is(err, context.Canceled) || took != 5500*time.Millisecond {
					t.Errorf("got %v after %s, want the message to be given back", err, took)
				}
			})
		})
	}
}

func TestDurablesOfOneStreamAreToldApart(t *testing.T) {
	one, other := (&sink{name: "b-c"}).durable("a"), (&sink{name: "c"}).durable("a-b")
	if one == other || one != "notify-a_b-c" {
		t.Errorf("got %s and %s", one, other)
	}
}

func heldFor(reason string) events.Outcome {
	o := outcome(events.VerbHeld, "shop", "r1")
	o.Reason = reason
	return o
}

func TestASinkIsToldOfTheWaitsThatItWants(t *testing.T) {
	for _, tt := range []struct {
		name, fields string
		want         []string
	}{
		{"by default of those that people can end", "", []string{"peer-failed", "of-a-later-version"}},
		{"of those that it names", "heldReasons: [limit-reached, on-hold]", []string{"limit-reached"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			configs, err := parseConfig([]byte("sinks: [{name: a, type: slack, url: 'https://x.example/', " + tt.fields + "}]"))
			testkit.Must(t, err)
			sink, err := newSink(configs[0], newClient(nil))
			testkit.Must(t, err)
			var got []string
			for _, reason := range []string{"limit-reached", "rolled-recently", "peer-failed", "of-a-later-version"} {
				if sink.wants(heldFor(reason)) {
					got = append(got, reason)
				}
			}
			testkit.WantEqual(t, "told of", tt.want, got)
			failed := heldFor("limit-reached")
			if failed.Verb = events.VerbFailed; !sink.wants(failed) {
				t.Error("a failure is left out for its reason")
			}
		})
	}
}

// Chat is louder than a Kubernetes Event.
func TestAWaitThatHasNoKubernetesEventHasNoMessageByDefault(t *testing.T) {
	want := map[string]bool{}
	for _, reason := range plan.Reasons() {
		if reason.Action() == plan.Hold && !reason.Silent() {
			want[reason.String()] = plan.Loud(reason.String())
		}
	}
	testkit.WantEqual(t, "reasons to wait, and which are reported by default", want, heldReasons)
}
