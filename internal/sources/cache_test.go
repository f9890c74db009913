package sources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestObjectCacheFindsWhatTheInformersKeep(t *testing.T) {
	configMap := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	elsewhere := events.Source{Kind: events.KindSecret, Namespace: "bank", Name: "db"}
	cached := cacheOf(t, &object{source: testSource}, &object{source: configMap}, &object{source: elsewhere},
		reducedOf(t, externalSecretSource, externalSecretOf(t, "db", 1, "True", "1-a", nil)))
	if found := cached.lookup(testSource); found == nil || found.source != testSource {
		t.Errorf("found %+v, want %s", found, testSource)
	}
	for _, missing := range []events.Source{otherSource, {Kind: events.KindCertificate, Namespace: "shop", Name: "db"}} {
		if found := cached.lookup(missing); found != nil {
			t.Errorf("found %s for %s", found.source, missing)
		}
	}
	var names []string
	for _, found := range cached.inNamespace("shop") {
		names = append(names, found.source.String())
	}
	slices.SortFunc(names, strings.Compare)
	if diff := cmp.Diff([]string{"configmap/app", "externalsecret/db", "secret/db"}, names); diff != "" {
		t.Errorf("in the namespace (-want +got):\n%s", diff)
	}
	if writers := cached.writersTo(testSource); len(writers) != 1 || writers[0].source.Kind != events.KindExternalSecret {
		t.Errorf("%s is written by %v", testSource, writers)
	}
	if writers := cached.writersTo(otherSource); len(writers) != 0 {
		t.Errorf("%s is written by %v", otherSource, writers)
	}
}
