package forcesync

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestATemplateThatChangesSyncsWhatNamesIt(t *testing.T) {
	const named = ", target: {template: {templateFrom: [{configMap: {name: page, items: []}}]}}"
	tests := []struct {
		name, spec, outcome string
		patches, warnings   []string
	}{
		{name: "once, even if that changes nothing", spec: named, patches: []string{"db uid-page/9"}, outcome: "db completed synced"},
		{
			name: "unless it cannot be synced", spec: named + ", refreshPolicy: CreatedOnce", outcome: "db skipped created-once",
			warnings: []string{"db NotSynced created-once: its template changed, but refreshPolicy CreatedOnce prevents another sync"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.secret("db", "shop/db", test.spec)
				b.secret("mail", "shop/mail", "")
				b.start(b.host())
				event := b.deliver(b.Context(), events.Change{
					Cluster: "demo", Source: events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "page"}, Verb: events.VerbChanged,
					UID: "uid-page", ResourceVersion: "9", ChangedAt: "9", Fingerprint: fp("a"), Time: time.Now(),
				})
				b.pass(20 * time.Second)
				b.mustSettle(event)
				b.want("patches", b.taken(), test.patches)
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				b.want("Kubernetes Events", b.warnings(), test.warnings)
			})
		})
	}
}
