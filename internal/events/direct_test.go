package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// fill stores n messages for each cluster in turn, and returns their subjects on StreamChanges.
func fill(t *testing.T, s *testServer, n int, clusters ...string) (subjects []string) {
	t.Helper()
	js := s.jetstream()
	for i := range n {
		for _, cluster := range clusters {
			name := fmt.Sprintf("%s.secret.shop.s%d", cluster, i)
			for _, root := range []string{changesRoot, historyRoot} {
				if _, err := js.PublishAsync(root+name, []byte("not an event")); err != nil {
					t.Fatal(err)
				}
			}
			subjects = append(subjects, changesRoot+name)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(testkit.Patience):
		t.Fatal("the messages are not stored")
	}
	return subjects
}

func TestAReadingOfManyRequestsIsCompleteAndInTheOrderOfTheStream(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	b.ReadDirectly()
	stored := fill(t, s, batchSize+88, testCluster, "us", "eu")
	of := func(clusters ...string) (want []string) {
		for _, subject := range stored {
			if slices.ContainsFunc(clusters, func(cluster string) bool { return strings.HasPrefix(subject, changesRoot+cluster+".") }) {
				want = append(want, subject)
			}
		}
		return want
	}
	for _, tt := range []struct {
		name     string
		clusters []string
		want     []string
	}{
		{"all clusters", nil, stored},
		{"two of three", []string{"us", testCluster}, of("us", testCluster)},
		{"one that is unknown", []string{"us", "none"}, of("us")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			if err := b.History(t.Context(), HistoryQuery{Clusters: tt.clusters}, func(s Stored) error {
				got = append(got, s.Subject)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the last on each subject", func(t *testing.T) {
		if state := readState(t, b, []string{changesRoot + "*.secret.>"}); len(state) != len(stored) {
			t.Errorf("got %d subjects, want %d", len(state), len(stored))
		}
	})
}

// losing returns a dialer whose connections lose the first message with a text.
func losing(t *testing.T, text string) *lossyDialer {
	d := &lossyDialer{T: t, lost: make(chan string, 1)}
	d.loses = func(_ []string, payload string) bool { return len(d.lost) == 0 && strings.Contains(payload, text) }
	return d
}

func TestWhatIsLostOfAnAnswerIsAskedForAgain(t *testing.T) {
	const stored = 20
	pending := func(n int) string { return fmt.Sprintf("%s: %d\r\n", headerPending, n) }
	for _, tt := range []struct{ name, lost string }{
		{"the first message", pending(stored - 1)},
		{"one in the middle", pending(stored / 2)},
		{"the last message", pending(0)},
		{"the end of the answer", "204 EOB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			want := fill(t, s, stored, testCluster)
			dialer := losing(t, tt.lost)
			b := dialer.bus(s)
			b.ReadDirectly()
			var got []string
			if err := b.History(t.Context(), HistoryQuery{}, func(s Stored) error {
				got = append(got, s.Subject)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if len(dialer.lost) != 1 {
				t.Error("no message was lost")
			}
		})
		t.Run(tt.name+" of the last on each subject", func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			fill(t, s, stored, testCluster)
			dialer := losing(t, tt.lost)
			b := dialer.bus(s)
			b.ReadDirectly()
			read := make(map[string]int)
			if err := b.State(t.Context(), SourceFilters(testCluster), func(s Stored) error { read[s.Subject]++; return nil }); err != nil {
				t.Fatal(err)
			}
			for subject, times := range read {
				if times != 1 {
					t.Errorf("%s was read %d times", subject, times)
				}
			}
			if len(read) != stored || len(dialer.lost) != 1 {
				t.Errorf("%d subjects were read, and %d messages lost, want %d and 1", len(read), len(dialer.lost), stored)
			}
		})
	}
}

func TestAReadingThatNoServerAnswersSaysWhatItTakes(t *testing.T) {
	s := startServer(t)
	fill(t, s, 1, testCluster)
	dialer := &lossyDialer{T: t, lost: make(chan string, 99), loses: func(_ []string, payload string) bool {
		return strings.Contains(payload, headerPending)
	}}
	b := dialer.bus(s)
	b.ReadDirectly()
	b.lostAfter = time.Millisecond
	err := b.State(t.Context(), SourceFilters(testCluster), func(Stored) error { return nil })
	if !errors.Is(err, errUnanswered) || !IsSilence(err) || !strings.Contains(fmt.Sprint(err), "$JS.API.DIRECT.GET.CHANGES") {
		t.Errorf("the error is %v, want one that names the subject, and that is worth another try", err)
	}
}

func TestFollowingWaitsForAServerThatIsAway(t *testing.T) {
	s := startServer(t)
	b, publisher := s.bus(), s.bus()
	b.ReadDirectly()
	b.lostAfter = time.Millisecond
	mustPublish(t, publisher, version("db", "1"), 0)
	enough, done := errors.New("enough"), make(chan struct{})
	seen := 0
	err := b.History(t.Context(), HistoryQuery{Follow: true}, func(Stored) error {
		if seen++; seen == 2 {
			return enough
		}
		go func() {
			defer close(done)
			s.restart(func() {
				asked := b.js.Conn().Stats().OutMsgs
				testkit.Eventually(t, "two requests are not answered", func() bool { return b.js.Conn().Stats().OutMsgs >= asked+2 })
			})
			mustPublish(t, publisher, version("mail", "1"), 0)
		}()
		return nil
	})
	<-done
	if !errors.Is(err, enough) {
		t.Errorf("following ended with %v after %d events, want both", err, seen)
	}
}
