package sources

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

const testTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestRequestOf(t *testing.T) {
	const id = "bao/team-a%2Feu/kv/shop/db v2 ü/7"
	for _, tt := range []struct {
		name               string
		cause, traceparent string
		want               request
	}{
		{"nothing", "", "", request{}},
		{"an event", id, "", request{event: id}},
		{"an event with its trace", id, testTraceparent, request{event: id, trace: events.TraceContext{Parent: testTraceparent}}},
		{"an event whose trace is none", id, "00-nonsense", request{event: id}},
		{"an event whose trace is zero", id, "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", request{event: id}},
		{"no trace without an event", "", testTraceparent, request{}},
		{"as long an event as is taken", strings.Repeat("x", 1200), "", request{event: strings.Repeat("x", 1200)}},
		{"none that is longer", strings.Repeat("x", 1201), testTraceparent, request{}},
		{"none with a control character", "a\nb", "", request{}},
		{"none that is not UTF-8", "a\xff", "", request{}},
		{"none with a character that nobody sees", "a\u200bb", "", request{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := requestOf(map[string]string{"keyturn.dev/cause": tt.cause, "keyturn.dev/traceparent": tt.traceparent})
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestRequestOfWhatAClusterExternalSecretMakes(t *testing.T) {
	const id, other = "bao/root/kv/shop/db/7", "bao/root/kv/shop/db/8"
	forced := map[string]string{"external-secrets.io/force-sync": id + "-r1@" + testTraceparent}
	if got, want := requestOf(forced), (request{event: id, trace: events.TraceContext{Parent: testTraceparent}}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	forced["keyturn.dev/cause"] = other
	if got, want := requestOf(forced), (request{event: other}); got != want {
		t.Errorf("with a cause of its own: got %+v, want %+v", got, want)
	}
	if got := requestOf(map[string]string{"external-secrets.io/force-sync": "1763752800"}); got != (request{}) {
		t.Errorf("for what somebody else asked for: got %+v, want none", got)
	}
}

func FuzzRequestOf(f *testing.F) {
	f.Add("bao/root/kv/shop/db/7", testTraceparent, "")
	f.Add("a\x00", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "")
	f.Add("\xff", "", "")
	f.Add("", "", "bao/root/kv/shop/db/7-r1@"+testTraceparent)
	f.Fuzz(func(t *testing.T, cause, traceparent, forced string) {
		got := requestOf(map[string]string{
			"keyturn.dev/cause": cause, "keyturn.dev/traceparent": traceparent, "external-secrets.io/force-sync": forced,
		})
		if got.event != "" && got.event != cause && !strings.HasPrefix(forced, got.event) ||
			got.trace.Parent != "" && got.trace.Parent != traceparent && !strings.HasSuffix(forced, got.trace.Parent) {
			t.Errorf("%q, %q, %q are read as %+v", cause, traceparent, forced, got)
		}
		change := events.Change{
			Cluster: "c", Source: testSource, Verb: events.VerbChanged, UID: "u", ResourceVersion: "1", Fingerprint: printed("0a", "1"), Time: epoch,
		}
		setCause(&change, events.Cause{Source: "externalsecret/db"}, got, "")
		event, err := change.Event()
		if err != nil {
			t.Fatalf("%q, %q, %q cannot be published: %v", cause, traceparent, forced, err)
		}
		if _, err := events.ParseChange(event); err != nil {
			t.Errorf("%q, %q, %q cannot be read: %v", cause, traceparent, forced, err)
		}
	})
}

func TestACauseIsThatOfOneChange(t *testing.T) {
	writer := events.Cause{Source: "externalsecret/db"}
	trace := events.TraceContext{Parent: testTraceparent}
	asked := func(event string) request { return request{event: event, trace: trace} }
	type step struct {
		verb   events.Verb
		asked  request
		want   events.Cause
		traced bool
	}
	caused := func(event, earlier string) events.Cause {
		return events.Cause{Source: writer.Source, Event: event, Earlier: earlier}
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a change that nobody asked for has a writer only", []step{
			{events.VerbChanged, request{}, caused("", ""), false},
		}},
		{"a change that was asked for is part of the trace", []step{
			{events.VerbChanged, asked("e1"), caused("e1", ""), true},
			{events.VerbChanged, asked("e2"), caused("e2", ""), true},
		}},
		{"the same request is not the cause of the next change, nor of those after it", []step{
			{events.VerbChanged, asked("e1"), caused("e1", ""), true},
			{events.VerbChanged, asked("e1"), caused("", "e1"), false},
			{events.VerbChanged, asked("e1"), caused("", "e1"), false},
			{events.VerbChanged, asked("e2"), caused("e2", ""), true},
		}},
		{"a request that is taken away and comes again is still that of an earlier change", []step{
			{events.VerbChanged, asked("e1"), caused("e1", ""), true},
			{events.VerbChanged, request{}, caused("", "e1"), false},
			{events.VerbChanged, asked("e1"), caused("", "e1"), false},
		}},
		{"what is seen for the first time is no effect, and the request is not that of the next change", []step{
			{events.VerbObserved, asked("e1"), caused("e1", ""), false},
			{events.VerbChanged, asked("e1"), caused("", "e1"), false},
		}},
		{"what has failed is tried again for the same request", []step{
			{events.VerbSynced, asked("e1"), caused("e1", ""), true},
			{events.VerbFailed, asked("e2"), caused("e2", "e1"), true},
			{events.VerbFailed, asked("e2"), caused("e2", "e1"), true},
			{events.VerbSynced, asked("e2"), caused("e2", ""), true},
			{events.VerbSynced, asked("e2"), caused("", "e2"), false},
		}},
		{"what fails later was not asked for", []step{
			{events.VerbSynced, asked("e1"), caused("e1", ""), true},
			{events.VerbFailed, asked("e1"), caused("", "e1"), false},
			{events.VerbSynced, asked("e1"), caused("", "e1"), false},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before *lastEvent
			for i, s := range tt.steps {
				change := events.Change{Verb: s.verb, Fingerprint: printed("0a", "1")}
				setCause(&change, writer, s.asked, before.usedRequest())
				if diff := cmp.Diff(&s.want, change.Cause); diff != "" {
					t.Fatalf("step %d: cause (-want +got):\n%s", i+1, diff)
				}
				if traced := change.Trace == trace; traced != s.traced {
					t.Fatalf("step %d: part of the trace: %t, want %t", i+1, traced, s.traced)
				}
				before = mustLast(t, change)
			}
		})
	}
	t.Run("without a writer and a request there is no cause", func(t *testing.T) {
		change := events.Change{Verb: events.VerbChanged}
		if setCause(&change, events.Cause{}, request{}, ""); change.Cause != nil {
			t.Errorf("it is %+v", change.Cause)
		}
	})
}

func TestWhatIsKeptOfASourceIsSmall(t *testing.T) {
	// There may be one for each Secret. The sizes are size classes of the allocator.
	if size := unsafe.Sizeof(object{}); size > 144 {
		t.Errorf("an object has %d bytes", size)
	}
	if size := unsafe.Sizeof(lastEvent{}); size > 192 {
		t.Errorf("what the stream says of it has %d bytes", size)
	}
}
