package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubject(t *testing.T) {
	for _, tt := range []struct {
		name, got, want string
	}{
		{"a secret has a subject of six tokens", Subject("prod-eu", Source{KindSecret, "shop", "db"}), "keyturn.v1.prod-eu.secret.shop.db"},
		{"a dot in a name is an underscore", Subject("c", Source{KindConfigMap, "shop", "app.v1.yaml"}), "keyturn.v1.c.configmap.shop.app_v1_yaml"},
		{"an outcome is under the kind and name of its workload", OutcomeSubject("c", Workload{Kind: "deployment", Namespace: "shop", Name: "web-a.b"}), "keyturn.v1.c.rollout.shop.deployment-web-a_b"},
		{"a path in a store keeps its slashes, and has no namespace", Subject("c", StorePath{"bao", "root", "secret", "shop/db"}.Source()), "keyturn.v1.c.openbao._.bao/root/secret/shop/db"},
		{"what else a path has is escaped", Subject("c", StorePath{"bao", "a/b", "kv", "x.y *>ü_Z"}.Source()), "keyturn.v1.c.openbao._.bao/a%252Fb/kv/x%2Ey%20%2A%3E%C3%BC_Z"},
		{"history has a root of its own", HistorySubject("keyturn.v1.c.secret.shop.db"), "keyturn.history.v1.c.secret.shop.db"},
		{"a dead letter is under the cluster that refused it", DeadLetterSubject("c", "keyturn.v1.c.secret.shop.db"), "keyturn.deadletter.v1.c.secret.shop.db"},
		{"a dead letter keeps a foreign cluster as a token", DeadLetterSubject("c", "keyturn.v1.other.secret.shop.db"), "keyturn.deadletter.v1.c.other.secret.shop.db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		})
	}
}

func TestParseSubjectRefuses(t *testing.T) {
	long := strings.Repeat("a", 254)
	for _, tt := range []struct {
		name, subject, reason string
	}{
		{"another tree", "orders.v1.c.secret.shop.db", ReasonMalformed},
		{"a later version", "keyturn.v2.c.secret.shop.db", ReasonUnknownVersion},
		{"too few tokens", "keyturn.v1.c.secret.shop", ReasonMalformed},
		{"too many tokens, as a name with dots would make", "keyturn.v1.c.secret.shop.db.v2", ReasonMalformed},
		{"an upper-case name", "keyturn.v1.c.secret.shop.DB", ReasonMalformed},
		{"a wildcard", "keyturn.v1.c.secret.shop.*", ReasonMalformed},
		{"a name longer than Kubernetes allows", "keyturn.v1.c.secret.shop." + long, ReasonMalformed},
		{"a kind with a dash", "keyturn.v1.c.sec-ret.shop.db", ReasonMalformed},
		{"a path in a namespace", "keyturn.v1.c.openbao.shop.bao/root/secret/db", ReasonMalformed},
		{"a path with an empty part", "keyturn.v1.c.openbao._.bao/root//db", ReasonMalformed},
		{"a path that is escaped where it need not be", "keyturn.v1.c.openbao._.bao/root/secret/%64b", ReasonMalformed},
		{"a path with a control character", "keyturn.v1.c.openbao._.bao/root/secret/a%0Ab", ReasonMalformed},
		{"an outcome without a workload kind", "keyturn.v1.c.rollout.shop.web", ReasonMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSubject(tt.subject)
			var reject *RejectError
			if !errors.As(err, &reject) || reject.Reason != tt.reason {
				t.Errorf("got %+v, %v; want reason %s", got, err, tt.reason)
			}
		})
	}
}

func FuzzStorePath(f *testing.F) {
	f.Add("bao", "root", "secret", "shop/db")
	f.Add("bao", "team-a/eu", "kv/prod", "a.b %2F")
	f.Add("bao", "%2F", "%", "ü\n")
	f.Add("", "/", "a//b", "*")
	f.Fuzz(func(t *testing.T, store, namespace, mount, path string) {
		want := StorePath{Store: store, Namespace: namespace, Mount: mount, Path: path}
		source := want.Source()
		got, err := source.StorePath()
		if err != nil {
			return
		}
		if got != want {
			t.Fatalf("%+v has the name %q, which is read as %+v", want, source.Name, got)
		}
		subject := Subject(testCluster, source)
		address, err := ParseSubject(subject)
		if err != nil || (Source{Kind: address.Kind, Namespace: address.Namespace, Name: address.Name}) != source {
			t.Fatalf("%q has the subject %q, which is read as %+v, %v", source.Name, subject, address, err)
		}
		if len(subject) > 4096 || strings.ContainsAny(subject, " \t\r\n*>") {
			t.Errorf("%q is no subject", subject)
		}
	})
}

func FuzzParseSubject(f *testing.F) {
	f.Add("keyturn.v1.prod-eu.secret.shop.db_v2")
	f.Add("keyturn.v1.c.rollout.shop.deployment-web")
	f.Add("keyturn.v1.c.configmap._.a")
	f.Add("keyturn.v2.c.secret.shop.db")
	f.Add("keyturn.v1.c.openbao._.bao/team-a%252Feu/kv/shop/db%2Ev2")
	f.Fuzz(func(t *testing.T, subject string) {
		address, err := ParseSubject(subject)
		if err != nil {
			if diff := cmp.Diff(Address{}, address); diff != "" {
				t.Errorf("an error comes with an address: %s", diff)
			}
			return
		}
		if again := address.Subject(); again != subject {
			t.Errorf("%q is read as %+v, which is written %q", subject, address, again)
		}
	})
}
