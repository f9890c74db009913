package events

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestOnlyASecretInAStoreIsLookedForUnderTheNamesOfOtherClusters(t *testing.T) {
	origins := Origins{Cluster: "demo", StoresFrom: []string{"hub"}}
	store := StorePath{Store: "bao", Namespace: RootNamespace, Mount: "secret", Path: "a"}.Source()
	secret := Source{Kind: KindSecret, Namespace: "shop", Name: "db"}
	for _, tt := range []struct {
		name      string
		got, want []string
	}{
		{"subjects of a secret in a store", origins.subjects(store), []string{"keyturn.v1.demo.openbao._.bao/root/secret/a", "keyturn.v1.hub.openbao._.bao/root/secret/a"}},
		{"subjects of a Secret", origins.subjects(secret), []string{"keyturn.v1.demo.secret.shop.db"}},
		{"filters of secrets in stores", origins.Filters(KindOpenBao, "shop"), []string{KindFilter("demo", KindOpenBao), KindFilter("hub", KindOpenBao)}},
		{"filters of Secrets", origins.Filters(KindSecret, "shop"), []string{NamespaceFilter("demo", KindSecret, "shop")}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// Names are what people write in annotations, and references in pod specs. NATS refuses some subjects, and ends the connection for others.
func TestNobodyIsAskedAboutANameThatNoObjectCanHave(t *testing.T) {
	b := sharedServer(t).bus()
	var lost atomic.Bool
	b.js.Conn().SetDisconnectErrHandler(func(*nats.Conn, error) { lost.Store(true) })
	origins := Origins{Cluster: testCluster, StoresFrom: []string{"hub"}}
	for _, source := range []Source{
		{Kind: KindSecret, Namespace: "shop", Name: "db cache"},
		{Kind: KindSecret, Namespace: "shop", Name: "db\ncache"},
		{Kind: KindConfigMap, Namespace: "shop", Name: "*"},
		{Kind: KindConfigMap, Namespace: "shop", Name: strings.Repeat("a", 5000)},
		{Kind: KindSecret, Namespace: "shop", Name: "Caché"},
		{Kind: KindSecret, Name: "db"},
		{Kind: KindOpenBao, Name: "bao/root/secret/" + strings.Repeat("a", 5000)},
	} {
		stored, err := answer(t, func() (Stored, error) { return origins.Last(t.Context(), &b.Reader, source) })
		if !errors.Is(err, ErrNotFound) || len(err.Error()) > 300 {
			t.Errorf("%.50q: got %d, %v, want ErrNotFound", source, stored.Seq, err)
		}
	}
	want := mustPublish(t, b, version("db", "1"), 0)
	last := func() (Stored, error) { return origins.Last(t.Context(), &b.Reader, version("db", "1").Source) }
	if stored, err := answer(t, last); err != nil || stored.Seq != want {
		t.Errorf("after that: got %d, %v, want %d", stored.Seq, err, want)
	}
	if lost.Load() {
		t.Error("the connection was lost")
	}
}
