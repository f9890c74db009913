package plugin

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/tests/testkit"
)

// told returns the rotations of a page in words: a line for each rotation, and a line for each of its rows.
func told(h *history) string {
	p := newPage(h.line)
	var out strings.Builder
	for _, r := range p.sections {
		out.WriteString(overall[r.worst] + ": " + r.object + " " + r.word + "; " + r.counts + "\n")
		for _, row := range r.rows {
			out.WriteString("   " + row.object.name + " " + row.word)
			for _, step := range row.steps {
				if step.text != "" {
					out.WriteString("; " + since(step.at.Sub(r.scale.start)) + " " + step.text)
				}
			}
			out.WriteString("\n")
		}
	}
	for _, u := range p.urgent {
		out.WriteString("look at " + u.object.name + ": " + u.why + "\n")
	}
	for _, o := range p.others {
		out.WriteString("nothing rolled for " + o.object.name + "\n")
	}
	return out.String()
}

func TestRowsSayWhatBecameOfAChange(t *testing.T) {
	const s = time.Second
	roll := func(h *history, verb events.Verb, at, started time.Duration, of, reason string) {
		h.outcome("east", "deployment", "web", verb, at, started, of, reason, "")
	}
	for _, test := range []struct {
		name    string
		events  func(h *history)
		options inspect.HistoryOptions
		want    string
	}{
		{
			name: "a skip because it was rolled already does not hide that it was rolled",
			events: func(h *history) {
				of := h.changed("east", "db", s, "")
				roll(h, events.VerbCompleted, 9*s, 5*s, of, "rolled-out")
				roll(h, events.VerbSkipped, 10*s, 0, of, "up-to-date")
			},
			want: "All ready: secret/db changed; 1 ready\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   deployment/web Ready; +4s patched; +8s ready\n",
		},
		{
			name: "a failure that a later change has mended is nothing to look at",
			events: func(h *history) {
				of := h.changed("east", "db", s, "")
				roll(h, events.VerbFailed, 9*s, 5*s, of, "deadline-exceeded")
				roll(h, events.VerbCompleted, 30*s, 25*s, h.changed("east", "db", 20*s, ""), "rolled-out")
			},
			want: "All ready: secret/db changed; 1 ready\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   deployment/web Ready; +5s patched; +10s ready\n" +
				"Nothing rolled: secret/db changed; 1 failed\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   deployment/web Failed; +4s patched; +8s failed\n",
		},
		{
			name: "a change that waits is overtaken by a later one",
			events: func(h *history) {
				roll(h, events.VerbHeld, 2*s, 0, h.changed("east", "db", s, ""), "on-hold")
				roll(h, events.VerbStarted, 25*s, 25*s, h.changed("east", "db", 20*s, ""), "content-changed")
			},
			want: "Rolling: secret/db changed; 1 rolling\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   deployment/web Rolling; +5s patched\n" +
				"Nothing rolled: secret/db changed; 1 superseded\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   deployment/web Superseded; +1s waits: on-hold\n",
		},
		{
			name: "a change of the store that is not among the events still joins what it led to",
			events: func(h *history) {
				const store = "bao/root/secret/shop/db/7"
				of := h.changed("east", "db", s, store)
				h.outcome("east", "externalsecret", "db", events.VerbCompleted, 2*s, 0, store, "synced", "")
				h.outcome("east", "externalsecret", "once", events.VerbSkipped, 3*s, 0, store, "created-once", "")
				roll(h, events.VerbStarted, 5*s, 5*s, of, "content-changed")
			},
			want: "Rolling: secret/db changed, by an event that is not on this page; 1 rolling\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   externalsecret/db Synced; +1s synced\n" +
				"   externalsecret/once Not written; +2s not written\n" +
				"   deployment/web Rolling; +4s patched\n",
		},
		{
			name: "a filter takes the whole rotation", options: inspect.HistoryOptions{Workload: "deployment/web", Verbs: []string{"held"}},
			events: func(h *history) {
				of := h.changed("east", "db", s, "")
				h.outcome("east", "deployment", "api", events.VerbHeld, 3*s, 0, of, "on-hold", "")
				roll(h, events.VerbStarted, 5*s, 5*s, of, "content-changed")
				roll(h, events.VerbStarted, 35*s, 35*s, h.changed("east", "mail", 30*s, ""), "content-changed")
			},
			want: "Waits: secret/db changed; 1 waits, 1 superseded\n" +
				"   secret/db Changed; +0 event changed\n" +
				"   deployment/api Waits; +2s waits: on-hold\n" +
				"   deployment/web Superseded; +4s patched\n" +
				"look at deployment/api: on-hold: \n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistory(t, test.options)
			test.events(h)
			got := told(h)
			testkit.WantEqual(t, "page", strings.ReplaceAll(test.want, "on-hold: \n", "on-hold\n"), got)
		})
	}
}

func TestAPageIsBoundedAndSaysWhatItLeavesOut(t *testing.T) {
	h := newHistory(t, inspect.HistoryOptions{})
	of := h.changed("east", "db", time.Second, "")
	var waits []fact
	for i := range 2*maxEvents + 10 {
		waits = append(waits, outcomeFact(events.Outcome{
			Cluster: "east", Verb: events.VerbHeld, Time: after(time.Minute), Cause: of, Reason: "on-hold",
			Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web-" + strconv.Itoa(i), UID: uid},
		}))
	}
	h.line.facts = append(h.line.facts, waits...)
	var out bytes.Buffer
	testkit.Must(t, h.line.write(&out))
	if kept := len(h.line.facts); kept != maxEvents {
		t.Errorf("events kept: got %d, want %d", kept, maxEvents)
	}
	for _, want := range []string{"older events; choose a later start", "objects of the rotation of"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if size := out.Len(); size > 1<<20 {
		t.Errorf("the page has %d bytes, want at most 1 MiB", size)
	}
}
