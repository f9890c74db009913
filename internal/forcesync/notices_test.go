package forcesync

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestEachProblemIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	b := newIndexBed(t)
	y := New(Host{Log: slog.New(slog.NewTextHandler(&log, nil))}, b.Index)
	for _, problem := range []string{"one", "one", "two", "", "two"} {
		es := b.secret("db", "shop/db")
		if problem != "" {
			es.Problems = []error{errors.New(problem)}
		}
		b.put(es)
		y.logProblems(t.Context(), nameOf(es))
	}
	if got := strings.Count(log.String(), "\n"); got != 3 {
		t.Errorf("%d lines, want 3: one, two, and two again after it was gone\n%s", got, &log)
	}
	es := b.secret("db", "shop/db")
	b.drop(es)
	y.logProblems(t.Context(), nameOf(es))
	if len(y.problems) != 0 {
		t.Errorf("something is left: %v", y.problems)
	}
}

func TestWhatIsLoggedAboutAnExternalSecretIsBounded(t *testing.T) {
	var log bytes.Buffer
	b := newIndexBed(t)
	y := New(Host{Log: slog.New(slog.NewTextHandler(&log, nil))}, b.Index)
	es := b.secret("db", "shop/db")
	es.Problems = slices.Repeat([]error{errors.New("find.name.regexp: missing closing )")}, 10_000)
	b.put(es)
	y.logProblems(t.Context(), nameOf(es))
	if size := log.Len(); size == 0 || size > 2*maxProblems {
		t.Errorf("%d bytes were logged, want %d at most", size, 2*maxProblems)
	}
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
		{name: "two others", servers: []string{other, "https://bao.example.com", other}, changes: []events.Change{rotation("shop/db", 2, nil)}, want: 2},
		{name: "one at which another path is read", servers: []string{other}, changes: []events.Change{rotation("shop/mail", 2, nil)}},
		{name: "a store whose addresses are not known", servers: []string{other}, changes: []events.Change{
			rotation("shop/db", 2, func(c *events.Change) { c.Store.Servers = nil }),
		}},
		{name: "two stores that have no such address", servers: []string{other}, want: 2, changes: []events.Change{
			rotation("shop/db", 2, nil), rotation("shop/db", 2, func(c *events.Change) { c.UID = "second" }),
		}},
		{name: "a long one", servers: []string{"https://" + strings.Repeat("x", 10_000)}, changes: []events.Change{rotation("shop/db", 2, nil)}, want: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newIndexBed(t)
			for n, server := range test.servers {
				b.put(externalsecret.ReadStore(b.object(fmt.Sprintf(
					"{metadata: {name: s%d, namespace: shop}, spec: {provider: {vault: {server: %q, path: secret}}}}", n, server))))
				b.put(externalsecret.Read(b.object(fmt.Sprintf(
					"{metadata: {name: es%d, namespace: shop, uid: u%[1]d}, spec: {secretStoreRef: {name: s%[1]d}, data: [{remoteRef: {key: shop/db}}]}}", n))))
			}
			var log bytes.Buffer
			y := New(Host{Log: slog.New(slog.NewTextHandler(&log, nil))}, b.Index)
			for _, change := range test.changes {
				y.logElsewhere(t.Context(), change)
			}
			if got := strings.Count(log.String(), "at another address"); got != test.want || log.Len() > 1000*max(got, 1) {
				t.Errorf("%d lines of %d bytes, want %d lines:\n%.2000s", got, log.Len(), test.want, log.String())
			}
		})
	}
}

func TestTheAddressesThatAreLoggedAreBounded(t *testing.T) {
	b := newIndexBed(t)
	for n := range maxAddresses + 5 {
		b.put(externalsecret.ReadStore(b.object(fmt.Sprintf(
			"{metadata: {name: s%d, namespace: shop}, spec: {provider: {vault: {server: 'https://bao%[1]d', path: secret}}}}", n))))
		b.put(externalsecret.Read(b.object(fmt.Sprintf(
			"{metadata: {name: es%d, namespace: shop, uid: u%[1]d}, spec: {secretStoreRef: {name: s%[1]d}, data: [{remoteRef: {key: shop/db}}]}}", n))))
	}
	y := New(Host{Log: slog.New(slog.DiscardHandler)}, b.Index)
	y.logElsewhere(t.Context(), rotation("shop/db", 2, nil))
	if len(y.addresses) != maxAddresses {
		t.Errorf("%d addresses are remembered, want %d", len(y.addresses), maxAddresses)
	}
}
