package forcesync

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

const secondVersion = "main/root/secret/shop/db/2"

// inBed runs a test in a bed of its own.
func inBed(t *testing.T, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		test(b)
		b.stop()
	})
}

// want compares two lists in any order.
func (b *bed) want(what string, got, want []string) {
	b.Helper()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestARotationSyncsWhatReadsIt(t *testing.T) {
	inBed(t, func(b *bed) {
		b.secret("db", "shop/db", "")
		b.secret("mail", "shop/mail", "")
		b.secret("too", "shop/db", "")
		b.start()
		event := b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		b.mustSettle(event)
		b.want("patches", b.taken(), []string{"db " + secondVersion, "too " + secondVersion})
		b.want("outcomes", b.outcomes(), []string{"db completed synced", "too completed synced"})
		b.want("Kubernetes Events", b.warnings(), nil)
		var annotations map[string]string
		b.with(func() { annotations = b.objects[types.NamespacedName{Namespace: "shop", Name: "db"}].GetAnnotations() })
		want := map[string]string{
			externalsecret.AnnotationForceSync: secondVersion + "@00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			events.AnnotationCause:             secondVersion,
			events.AnnotationTraceparent:       "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			annotationSyncedFrom:               "1-",
		}
		if diff := cmp.Diff(want, annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		b.stop()
		if left := b.left(); left != "" {
			t.Errorf("something is left: %s", left)
		}
	})
}

func TestWhatCannotBeForcedIsTold(t *testing.T) {
	tests := []struct {
		name, spec string
		dryRun     bool
		outcome    string
		warned     bool
	}{
		{name: "a policy by which it is read once", spec: ", refreshPolicy: CreatedOnce", outcome: "db skipped created-once", warned: true},
		{name: "a dry run", dryRun: true, outcome: "db skipped dry-run"},
		{name: "a policy, also in a dry run", spec: ", refreshPolicy: CreatedOnce", dryRun: true, outcome: "db skipped created-once", warned: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBed(t, func(b *bed) {
				b.secret("db", "shop/db", test.spec)
				options := b.options()
				options.DryRun = test.dryRun
				b.startWith(options)
				event := b.rotate("shop/db", 2, nil)
				b.pass(time.Second)
				b.mustSettle(event)
				b.want("patches", b.taken(), nil)
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				if warnings := b.warnings(); len(warnings) > 0 != test.warned {
					t.Errorf("Kubernetes Events: %q", warnings)
				}
			})
		})
	}
}

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
				b.start()
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
