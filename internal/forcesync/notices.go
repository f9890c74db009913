package forcesync

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const (
	// maxProblems is how much is logged about one ExternalSecret, in characters. Without a limit, the author of an ExternalSecret could make the log
	// line arbitrarily long.
	maxProblems = 1000
	// maxAddresses is how many addresses are logged. Whoever writes SecretStores can invent any number.
	maxAddresses = 256
	// maxAddress is how much of an address is logged, in characters.
	maxAddress = 200
)

// storeAddress is an address in the place of those of a store.
type storeAddress struct{ store, address string }

// logProblems logs the parts of an ExternalSecret that has changed that are not readable, unless the last line about it had the same text.
func (y *Syncer) logProblems(ctx context.Context, name types.NamespacedName) {
	es := y.index.get(name)
	if es == nil || len(es.Problems) == 0 {
		delete(y.problems, name)
		return
	}
	text := fmt.Sprintf("%.*s", maxProblems, errors.Join(es.Problems...))
	if y.problems[name] != text {
		y.problems[name] = text
		y.host.Log.WarnContext(ctx, "externalsecret not readable", "externalsecret", name.Name, "namespace", name.Namespace, "err", text)
	}
}

// logElsewhere logs the addresses at which ExternalSecrets read a path that was changed in a store without such an address: each once for a store.
// They may be of another store. But if they are of this one, its ExternalSecrets are never synced, and nothing else shows why.
func (y *Syncer) logElsewhere(ctx context.Context, change events.Change) {
	rotation, ok := externalsecret.RotationOf(change)
	if !ok {
		return
	}
	for server, reader := range y.index.elsewhere(rotation) {
		found := storeAddress{change.UID, fmt.Sprintf("%.*s", maxAddress, server)}
		if _, known := y.addresses[found]; known || len(y.addresses) >= maxAddresses {
			continue
		}
		y.addresses[found] = struct{}{}
		y.host.Log.InfoContext(ctx, "externalsecret reads a changed path at another address; it is not synced",
			"externalsecret", reader.Name, "namespace", reader.Namespace, "source", change.Source.String(),
			"address", found.address, "addresses", change.Store.Servers)
	}
}
