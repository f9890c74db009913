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
			a := newAddresses(b.Index, slog.New(slog.NewTextHandler(&log, nil)))
			for _, change := range test.changes {
				r, _ := externalsecret.RotationOf(change)
				a.review(t.Context(), change, r)
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
	a := newAddresses(b.Index, slog.New(slog.DiscardHandler))
	change := rotation("shop/db", 2, nil)
	r, _ := externalsecret.RotationOf(change)
	a.review(t.Context(), change, r)
	if len(a.logged) != maxAddresses {
		t.Errorf("%d addresses are remembered, want %d", len(a.logged), maxAddresses)
	}
}
