package install

import (
	"slices"
	"testing"

	"github.com/keyturn/keyturn/tests/rights"
)

// scenes has what happens in each act, by its name.
var scenes = map[string]func(*testing.T) scene{
	"for a cluster":     func(*testing.T) scene { return shopScene() },
	"for one namespace": func(*testing.T) scene { return shopScene() },
	"with the components that need nothing else":   func(*testing.T) scene { return componentScene() },
	"with workloads and sources of other projects": kindsScene,
	"with a target":      targetScene,
	"with secret stores": func(t *testing.T) scene { return storeScene(startStore(t)) },
}

// TestEachRightIsUsed shows by the audit log that no right is superfluous: a program has used each, on the object that its rule names and in the
// namespace that its binding is for.
func TestEachRightIsUsed(t *testing.T) {
	t.Parallel()
	for _, act := range rights.Acts {
		t.Run(act.Name, func(t *testing.T) {
			t.Parallel()
			begin := scenes[act.Name]
			if begin == nil {
				t.Fatal("nothing happens in this act of package rights: it has no scene")
			}
			b := newBench(t, begin(t), rights.GrantsOf(t, slices.Concat(act.Beside, act.Manifests)...), withoutStreaming)
			b.run()
			b.dryRun()
			b.uses(rights.PermissionsOf(rights.GrantsOf(t, act.Manifests...)))
		})
	}
}
