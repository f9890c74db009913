package events

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubject(t *testing.T) {
	tests := []struct {
		name, got, want string
	}{
		{"a secret has a subject of six tokens", Subject("prod-eu", Source{KindSecret, "shop", "db"}), "keyturn.v1.prod-eu.secret.shop.db"},
		{"a dot in a name is an underscore", Subject("c", Source{KindConfigMap, "shop", "app.v1.yaml"}), "keyturn.v1.c.configmap.shop.app_v1_yaml"},
		{"an object in no namespace has an underscore for one", Subject("c", Source{Kind: KindSecret, Name: "x"}), "keyturn.v1.c.secret._.x"},
		{"an outcome is under the kind and name of its workload", OutcomeSubject("c", Workload{Kind: "deployment", Namespace: "shop", Name: "web-a.b"}), "keyturn.v1.c.rollout.shop.deployment-web-a_b"},
		{"a path in a store keeps its slashes, and has no namespace", Subject("c", StorePath{"bao", "root", "secret", "shop/db"}.Source()), "keyturn.v1.c.openbao._.bao/root/secret/shop/db"},
		{"what else a path has is escaped", Subject("c", StorePath{"bao", "a/b", "kv", "x.y *>ü_Z"}.Source()), "keyturn.v1.c.openbao._.bao/a%252Fb/kv/x%2Ey%20%2A%3E%C3%BC_Z"},
		{"an ExternalSecret has a subject like a Secret", Subject("c", Source{KindExternalSecret, "shop", "db"}), "keyturn.v1.c.externalsecret.shop.db"},
		{"history has a root of its own", HistorySubject("keyturn.v1.c.secret.shop.db"), "keyturn.history.v1.c.secret.shop.db"},
		{"a dead letter is under the cluster that refused it", deadLetterSubject("c", "keyturn.v1.c.secret.shop.db"), "keyturn.deadletter.v1.c.secret.shop.db"},
		{"a dead letter keeps a foreign cluster as a token", deadLetterSubject("c", "keyturn.v1.other.secret.shop.db"), "keyturn.deadletter.v1.c.other.secret.shop.db"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %s, want %s", tt.got, tt.want)
			}
		})
	}
}

func TestParseSubjectRefuses(t *testing.T) {
	long := strings.Repeat("a", 254)
	tests := []struct {
		name, subject, reason string
	}{
		{"nothing", "", ReasonMalformed},
		{"another tree", "orders.v1.c.secret.shop.db", ReasonMalformed},
		{"a later version", "keyturn.v2.c.secret.shop.db", ReasonUnknownVersion},
		{"a version without a token of its own", "keyturn.v1c.secret.shop.db", ReasonUnknownVersion},
		{"the tree of history", "keyturn.history.v1.c.secret.shop.db", ReasonMalformed},
		{"too few tokens", "keyturn.v1.c.secret.shop", ReasonMalformed},
		{"too many tokens, as a name with dots would make", "keyturn.v1.c.secret.shop.db.v2", ReasonMalformed},
		{"an empty cluster", "keyturn.v1..secret.shop.db", ReasonMalformed},
		{"an upper-case name", "keyturn.v1.c.secret.shop.DB", ReasonMalformed},
		{"a wildcard", "keyturn.v1.c.secret.shop.*", ReasonMalformed},
		{"a name that begins with a dot", "keyturn.v1.c.secret.shop._db", ReasonMalformed},
		{"a name that is only the sign for no namespace", "keyturn.v1.c.secret.shop._", ReasonMalformed},
		{"a name longer than Kubernetes allows", "keyturn.v1.c.secret.shop." + long, ReasonMalformed},
		{"a cluster with an underscore", "keyturn.v1.a_b.secret.shop.db", ReasonMalformed},
		{"a kind with a dash", "keyturn.v1.c.sec-ret.shop.db", ReasonMalformed},
		{"a path in a namespace", "keyturn.v1.c.openbao.shop.bao/root/secret/db", ReasonMalformed},
		{"a path without a mount", "keyturn.v1.c.openbao._.bao/root/secret", ReasonMalformed},
		{"a path with an empty part", "keyturn.v1.c.openbao._.bao/root//db", ReasonMalformed},
		{"a path that is escaped where it need not be", "keyturn.v1.c.openbao._.bao/root/secret/%64b", ReasonMalformed},
		{"a path with half an escape", "keyturn.v1.c.openbao._.bao/root/secret/db%2", ReasonMalformed},
		{"a path with a control character", "keyturn.v1.c.openbao._.bao/root/secret/a%0Ab", ReasonMalformed},
		{"a path of a store with an upper-case name", "keyturn.v1.c.openbao._.Bao/root/secret/db", ReasonMalformed},
		{"a path with a wildcard", "keyturn.v1.c.openbao._.bao/root/secret/*", ReasonMalformed},
		{"an outcome without a workload kind", "keyturn.v1.c.rollout.shop.web", ReasonMalformed},
		{"an outcome with a dot in the workload kind", "keyturn.v1.c.rollout.shop.a_b-web", ReasonMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSubject(tt.subject)
			var reject *RejectError
			if !errors.As(err, &reject) || reject.Reason != tt.reason {
				t.Errorf("got %+v, %v; want reason %s", got, err, tt.reason)
			}
		})
	}
}

func TestSubjectIsABijection(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := make(map[string]Address)
	for range 20_000 {
		want := Address{Cluster: randomLabel(random), Kind: KindSecret, Namespace: randomName(random), Name: randomName(random)}
		switch random.IntN(6) {
		case 0:
			want.Kind = KindConfigMap
		case 1:
			want.Kind, want.Name = KindRollout, "statefulset-"+want.Name
		case 2:
			want.Namespace = ""
		case 3:
			path := StorePath{Store: randomLabel(random), Namespace: randomPath(random), Mount: randomPath(random), Path: randomPath(random)}
			want.Kind, want.Namespace, want.Name = KindOpenBao, "", path.Source().Name
			if got, err := (Source{Kind: KindOpenBao, Name: want.Name}).StorePath(); err != nil || got != path {
				t.Fatalf("%+v has the name %s, which is read as %+v, %v", path, want.Name, got, err)
			}
		}
		subject := want.subject()
		got, err := ParseSubject(subject)
		if err != nil || got != want {
			t.Fatalf("%s: got %+v, %v; want %+v", subject, got, err, want)
		}
		if other, taken := seen[subject]; taken && other != want {
			t.Fatalf("%s stands for %+v and %+v", subject, other, want)
		}
		seen[subject] = want
	}
}

// randomLabel returns a short label of few letters, so that names often differ in a dot or a dash only.
func randomLabel(random *rand.Rand) string {
	label := make([]byte, 1+random.IntN(3))
	for i := range label {
		label[i] = "a0-"[random.IntN(3)]
	}
	label[0] = 'a'
	label[len(label)-1] = 'a'
	return string(label)
}

func randomName(random *rand.Rand) string {
	labels := make([]string, 1+random.IntN(3))
	for i := range labels {
		labels[i] = randomLabel(random)
	}
	return strings.Join(labels, ".")
}

// randomPath returns a path in a store, with characters that need escaping or look like escapes.
func randomPath(random *rand.Rand) string {
	parts := make([]string, 1+random.IntN(3))
	for i := range parts {
		letters := []rune("aA.%2Fü _*>")
		for range 1 + random.IntN(4) {
			parts[i] += string(letters[random.IntN(len(letters))])
		}
	}
	return strings.Join(parts, "/")
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
		if again := address.subject(); again != subject {
			t.Errorf("%q is read as %+v, which is written %q", subject, address, again)
		}
	})
}

func TestValidateCluster(t *testing.T) {
	for _, good := range []string{"a", "prod-eu", "0", strings.Repeat("a", 63)} {
		if err := ValidateCluster(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "Prod", "a.b", "a_b", "-a", "a-", "a b", "*", ">", strings.Repeat("a", 64)} {
		err := ValidateCluster(bad)
		if err == nil {
			t.Errorf("%q is taken", bad)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "\""+bad+"\", want ") || strings.Contains(text, "\n") {
			t.Errorf("%q: the error does not begin with the value in one line: %s", bad, text)
		}
	}
}
