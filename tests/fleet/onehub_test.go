package fleet

import "testing"

// TestOneHubServesClustersOfEachKind has a hub for what neither stops nor reloads its servers: one cluster watches the secret stores for all, one
// connects to the hub, and one has a leaf node. Two are called by numbers: a server takes a word of digits for a number, unless it stands in quotes.
func TestOneHubServesClustersOfEachKind(t *testing.T) {
	t.Parallel()
	h := renderWithStores(t, "7", "7", "us", "42:leaf")
	h.start("7", "us", "42")
	h.declareFleet()
	t.Run("one cluster watches the stores for all", func(t *testing.T) { h.with(t).shareStores("7", "us", "42") })
	t.Run("no user has answers put where it may not publish", func(t *testing.T) { h.with(t).misdirect("42", "us") })
}
