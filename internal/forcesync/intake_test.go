package forcesync

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/tests/testkit"
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

// runInBed is inBed for a subtest.
func runInBed(t *testing.T, name string, test func(b *bed)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBed(t, test) })
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
		testkit.WantEqual(t, "annotations", want, annotations)
		b.stop()
		if left := b.left(); left != "" {
			t.Errorf("something is left: %s", left)
		}
	})
}

func TestWhatCannotBeForcedIsTold(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		dryRun     bool
		outcome    string
		warned     bool
	}{
		{name: "a policy by which it is read once", spec: ", refreshPolicy: CreatedOnce", outcome: "db skipped created-once", warned: true},
		{name: "a dry run", dryRun: true, outcome: "db skipped dry-run"},
		{name: "a policy, also in a dry run", spec: ", refreshPolicy: CreatedOnce", dryRun: true, outcome: "db skipped created-once", warned: true},
	} {
		runInBed(t, test.name, func(b *bed) {
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
				b.Errorf("Kubernetes Events: %q", warnings)
			}
		})
	}
}

func TestATemplateThatChangesSyncsWhatNamesIt(t *testing.T) {
	const named = ", target: {template: {templateFrom: [{configMap: {name: page, items: []}}]}}"
	synced := []string{"db uid-page/9"}
	for _, test := range []struct {
		name, spec        string
		mutate            func(*events.Change)
		outcome           string
		patches, warnings []string
	}{
		{name: "once, even if that changes nothing", spec: named, patches: synced, outcome: "db completed synced"},
		{
			name: "where it is a Secret", spec: ", target: {template: {templateFrom: [{secret: {name: page, items: []}}]}}",
			mutate: func(c *events.Change) { c.Source.Kind = events.KindSecret }, patches: synced, outcome: "db completed synced",
		},
		{
			name: "among others, for the annotations of the Secret",
			spec: ", target: {creationPolicy: Merge, template: {templateFrom: " +
				"[{literal: x}, {configMap: {name: other, items: []}}, {target: Annotations, configMap: {name: page, items: []}}]}}",
			patches: synced, outcome: "db completed synced",
		},
		{
			name: "when it exists again with what it had", spec: named,
			mutate:  func(c *events.Change) { c.Verb, c.Previous = events.VerbObserved, c.Fingerprint },
			patches: synced, outcome: "db completed synced",
		},
		{
			name: "unless the Secret stays as it was created", spec: ", target: {immutable: true, template: {templateFrom: [{configMap: {name: page}}]}}",
			outcome: "db skipped immutable-target",
			warnings: []string{"db NotSynced immutable-target: its template changed, but the Secret is immutable: it has to be deleted " +
				"to be created with the new content"},
		},
		{
			name: "unless it cannot be synced", spec: named + ", refreshPolicy: CreatedOnce", outcome: "db skipped created-once",
			warnings: []string{"db NotSynced created-once: its template changed, but refreshPolicy CreatedOnce prevents another sync"},
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", test.spec)
			b.secret("mail", "shop/mail", "")
			b.start()
			change := events.Change{
				Cluster: "demo", Source: events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "page"}, Verb: events.VerbChanged,
				UID: "uid-page", ResourceVersion: "9", ChangedAt: "9", Fingerprint: fp("a"), Time: time.Now(),
			}
			if test.mutate != nil {
				test.mutate(&change)
			}
			event := b.deliver(b.Context(), change)
			b.pass(20 * time.Second)
			b.mustSettle(event)
			b.want("patches", b.taken(), test.patches)
			b.want("outcomes", b.outcomes(), []string{test.outcome})
			b.want("Kubernetes Events", b.warnings(), test.warnings)
		})
	}
}

func TestAnAddressThatNoStoreHasIsLoggedOnce(t *testing.T) {
	const other = "https://bao.openbao.svc.cluster.local:8200"
	for _, test := range []struct {
		name    string
		server  string
		changes []events.Change
		want    int
	}{
		{name: "the address of the store", server: "https://bao", changes: []events.Change{rotation("shop/db", 2, nil)}},
		{name: "another one", server: other, changes: []events.Change{rotation("shop/db", 2, nil), rotation("shop/db", 3, nil)}, want: 1},
		{name: "one at which another path is read", server: other, changes: []events.Change{rotation("shop/mail", 2, nil)}},
		{name: "a long one", server: "https://" + strings.Repeat("x", 10_000), changes: []events.Change{rotation("shop/db", 2, nil)}, want: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newIndexBed(t)
			const store = "{metadata: {name: bao, namespace: shop}, spec: {provider: {vault: {server: %q, path: secret}}}}"
			b.put(externalsecret.ReadStore(b.object(fmt.Sprintf(store, test.server))), false)
			b.put(b.secret("db", "shop/db"), false)
			var log bytes.Buffer
			y := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, nil, b.Index)
			for _, change := range test.changes {
				y.asked(t.Context(), change, nil, nil)
			}
			if got := strings.Count(log.String(), "at another address"); got != test.want || log.Len() > 1000*max(got, 1) {
				t.Errorf("%d lines of %d bytes, want %d lines:\n%.2000s", got, log.Len(), test.want, log.String())
			}
		})
	}
}
