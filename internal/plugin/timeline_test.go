package plugin

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/tests/testkit"
)

// began is when the fixtures begin: at three in the morning.
var began = time.Date(2026, 3, 14, 3, 0, 0, 0, time.UTC)

const (
	uid   = "5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"
	print = "k0a1b2c3d:22222222222222222222222222222222"
)

// after returns the time of a fixture.
func after(d time.Duration) time.Time { return began.Add(d) }

// history builds events as the programs publish them.
type history struct {
	t    *testing.T
	line *timeline
	// versions counts up, so that each event has a unique id.
	versions int
}

func newHistory(t *testing.T, options inspect.HistoryOptions) *history {
	t.Helper()
	return &history{t: t, line: &timeline{options: options, now: after(10 * time.Minute)}}
}

// rotated adds a new version of a secret in a store, and returns the id of the event.
func (h *history) rotated(at time.Duration) string {
	h.t.Helper()
	c := events.Change{
		Cluster: "shared", Source: events.StorePath{Store: "bao", Namespace: "root", Mount: "secret", Path: "shop/db"}.Source(), Verb: events.VerbRotated,
		UID: "bao", ResourceVersion: "1773500966535897932", Fingerprint: print, Time: after(at), WrittenAt: after(at - 80*time.Millisecond), Truncated: true,
		ChangedAt: "1773500966535897932", Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Store: &events.StoreState{Servers: []string{"https://bao.example.com:8200"}, Engine: "kv", Version: 7, Revision: "7/1773500966", By: "kubernetes-shop-db"},
	}
	h.add(c)
	return c.ID()
}

// changed adds a change of a Secret that an event caused.
func (h *history) changed(cluster, name string, at time.Duration, cause string) string {
	h.t.Helper()
	h.versions++
	c := events.Change{
		Cluster: cluster, Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: name}, Verb: events.VerbChanged,
		UID: uid, ResourceVersion: "471" + string(rune('0'+h.versions)), Fingerprint: print, Time: after(at), Changed: []string{"password"},
		Keys: map[string]events.Key{"password": {Fingerprint: print}}, ChangedAt: "4711", WrittenAt: after(at).Truncate(time.Second),
	}
	if cause != "" {
		c.Cause = &events.Cause{Source: "externalsecret/" + name, Event: cause}
	}
	h.add(c)
	return c.ID()
}

func (h *history) add(of interface{ Encode() (events.Stored, error) }) {
	h.t.Helper()
	stored, err := of.Encode()
	testkit.Must(h.t, err)
	h.line.add(stored)
}

// outcome adds the outcome of a change. Started is zero if nothing was patched.
func (h *history) outcome(cluster, kind, name string, verb events.Verb, at, started time.Duration, of, reason, message string) {
	h.t.Helper()
	o := events.Outcome{
		Cluster: cluster, Verb: verb, Time: after(at), Cause: of, Reason: reason, Message: message, ResourceVersion: "8", Revision: "r-" + of,
		Workload: events.Workload{Kind: kind, Namespace: "shop", Name: name, UID: uid},
		Sources:  []events.OutcomeSource{{Source: "secret/db", Event: of}},
	}
	if started != 0 {
		o.StartedAt = after(started)
	}
	h.add(o)
}

// night adds a rotation in a store that two clusters share: some workloads are ready, one failed, and others wait for that one or for people.
func (h *history) night() {
	h.t.Helper()
	const ms = time.Millisecond
	store := h.rotated(120 * ms)
	for i, cluster := range []string{"east", "west"} {
		late := time.Duration(i) * 300 * ms
		secret := h.changed(cluster, "db", 1300*ms+late, store)
		h.outcome(cluster, "externalsecret", "db", events.VerbCompleted, 1500*ms+late, 0, store, "synced", "it was synced after the change")
		h.outcome(cluster, "deployment", "web", events.VerbStarted, 1900*ms+late, 1900*ms+late, secret, "content-changed", "rolled for secret/db (password)")
		h.outcome(cluster, "deployment", "reports", events.VerbSkipped, 1950*ms+late, 0, secret, "keys-not-consumed", "no key that the pods read has changed")
	}
	secret := uid + "/4711"
	h.outcome("east", "deployment", "web", events.VerbCompleted, 14*time.Second, 1900*ms, secret, "rolled-out", "deployment successfully rolled out")
	h.outcome("east", "statefulset", "orders", events.VerbHeld, 2*time.Second, 0, secret, "limit-reached", "as many rollouts as max-rollouts allows are in progress")
	h.outcome("east", "statefulset", "orders", events.VerbStarted, 14200*ms, 14200*ms, secret, "content-changed", "rolled for secret/db (password)")
	h.outcome("east", "statefulset", "orders", events.VerbCompleted, 41*time.Second, 14200*ms, secret, "rolled-out", "3 of 3 pods are ready")
	h.outcome("east", "cronjob", "billing", events.VerbSkipped, 2*time.Second, 0, secret, "suspended", "the workload is suspended, and its next pods read the new content")
	west := uid + "/4712"
	h.outcome("west", "deployment", "web", events.VerbFailed, 92*time.Second, 2200*ms, west, "deadline-exceeded", `ReplicaSet "web-6d4f" has timed out progressing.`)
	h.outcome("west", "deployment", "api", events.VerbHeld, 2300*ms, 0, west, "limit-reached", "as many rollouts as max-rollouts allows are in progress")
	h.outcome("west", "deployment", "api", events.VerbHeld, 92500*ms, 0, west, "peer-failed", "another workload failed to roll for the same change")
	h.outcome("west", "daemonset", "agent", events.VerbHeld, 2400*ms, 0, west, "window-closed", "no window is open in which the workload may be rolled")
	h.outcome("west", "deployment", "cache", events.VerbStarted, 9*time.Minute, 9*time.Minute, west, "content-changed", "rolled for secret/db (password)")
	h.changed("east", "unread", 5*time.Minute, "")
}
