package forcesync

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const (
	// maxAddresses is how many addresses are logged. Whoever writes SecretStores can invent any number.
	maxAddresses = 256
	// maxAddress is how much of an address is logged, in characters.
	maxAddress = 200
)

// addresses logs the addresses at which ExternalSecrets read a path that was changed in a store without such an address: each once for a store.
// They may be of another store. But if they are of this one, its ExternalSecrets are never synced, and nothing else shows why.
type addresses struct {
	index  *Index
	log    *slog.Logger
	logged map[storeAddress]struct{}
}

type storeAddress struct{ store, address string }

func newAddresses(index *Index, log *slog.Logger) addresses {
	return addresses{index: index, log: log, logged: make(map[storeAddress]struct{})}
}

// review logs addresses that are not of the store of a rotation.
func (a *addresses) review(ctx context.Context, change events.Change, rotation externalsecret.Rotation) {
	for server, reader := range a.index.elsewhere(rotation) {
		found := storeAddress{change.UID, fmt.Sprintf("%.*s", maxAddress, server)}
		if _, known := a.logged[found]; known || len(a.logged) >= maxAddresses {
			continue
		}
		a.logged[found] = struct{}{}
		a.log.InfoContext(ctx, "externalsecret reads a changed path at another address; it is not synced",
			"externalsecret", reader.Name, "namespace", reader.Namespace, "source", change.Source.String(),
			"address", found.address, "addresses", change.Store.Servers)
	}
}
