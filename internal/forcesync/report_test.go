package forcesync

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestEveryReasonOfASyncIsTold(t *testing.T) {
	sentences := make(map[string]bool)
	for reason, verdict := range verdicts {
		if verdict.sentence == "" || sentences[verdict.sentence] {
			t.Errorf("%s says nothing, or the same as another", reason)
		}
		sentences[verdict.sentence] = true
		if failed := verdict.verb == events.VerbFailed; failed != (verdict.event == eventSyncFailed) {
			t.Errorf("%s: the verb is %s, and the Kubernetes Event %q", reason, verdict.verb, verdict.event)
		}
	}
	for _, obstacle := range []externalsecret.Obstacle{externalsecret.CreatedOnce, externalsecret.NoInterval, externalsecret.Generates} {
		if verdicts[reason(obstacle)].event != eventNotSynced {
			t.Errorf("obstacle %q makes no Kubernetes Event", obstacle)
		}
	}
}

// readAt creates the ExternalSecret es<n>, which reads shop/db at the address of a store.
func (b *indexBed) readAt(n int, server string) {
	b.put(externalsecret.ReadStore(b.object(fmt.Sprintf(
		"{metadata: {name: s%d, namespace: shop}, spec: {provider: {vault: {server: %q, path: secret}}}}", n, server))), false)
	b.put(externalsecret.Read(b.object(fmt.Sprintf(
		"{metadata: {name: es%d, namespace: shop, uid: u%[1]d}, spec: {secretStoreRef: {name: s%[1]d}, data: [{remoteRef: {key: shop/db}}]}}", n))), false)
}

func TestAnAddressThatNoStoreHasIsLoggedOnce(t *testing.T) {
	const other = "https://bao.openbao.svc.cluster.local:8200"
	tests := []struct {
		name    string
		servers []string
		changes []events.Change
		want    int
	}{
		{name: "the address of the store", servers: []string{"https://bao"}, changes: []events.Change{rotation("shop/db", 2, nil)}},
		{name: "another one", servers: []string{other}, changes: []events.Change{rotation("shop/db", 2, nil), rotation("shop/db", 3, nil)}, want: 1},
		{name: "one at which another path is read", servers: []string{other}, changes: []events.Change{rotation("shop/mail", 2, nil)}},
		{name: "a long one", servers: []string{"https://" + strings.Repeat("x", 10_000)}, changes: []events.Change{rotation("shop/db", 2, nil)}, want: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newIndexBed(t)
			for n, server := range test.servers {
				b.readAt(n, server)
			}
			var log bytes.Buffer
			y := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, nil, b.Index)
			for _, change := range test.changes {
				y.logElsewhere(t.Context(), change)
			}
			if got := strings.Count(log.String(), "at another address"); got != test.want || log.Len() > 1000*max(got, 1) {
				t.Errorf("%d lines of %d bytes, want %d lines:\n%.2000s", got, log.Len(), test.want, log.String())
			}
		})
	}
}
