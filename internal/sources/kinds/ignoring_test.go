package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

var (
	labelledByVSO = metadata{labels: map[string]string{"app.kubernetes.io/component": "secret-sync", "app.kubernetes.io/managed-by": "hashicorp-vso"}}
	ownedByVSO    = metadata{owner: metav1.OwnerReference{APIVersion: "secrets.hashicorp.com/v1beta1", Kind: "VaultDynamicSecret", Name: "orders-db"}}
	ownedByESO    = metadata{owner: metav1.OwnerReference{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "db", Controller: new(true)}}
	managedByESO  = metadata{labels: map[string]string{"reconcile.external-secrets.io/managed": "true"}}
)

// annotatedWith is the metadata with an annotation.
func (m metadata) annotatedWith(name, value string) metadata {
	all := map[string]string{}
	maps.Copy(all, m.annotations)
	all[name], m.annotations = value, all
	return m
}

// answer is what Vault answers about a static role whose password was rotated, so many seconds before the next time.
func answer(password, rotated, ttl string) content {
	return content{"username": "orders", "password": password, "rotation_period": "86400", "last_vault_rotation": rotated, "ttl": ttl}
}

// withRaw is an answer as the Vault Secrets Operator writes it.
func withRaw(data content) content {
	raw, _ := json.Marshal(data)
	data["_raw"] = string(raw)
	return data
}

func TestAnAnswerAboutAStaticRoleChangesWithThePassword(t *testing.T) {
	const (
		noise = "last_vault_rotation!static-creds"
		found = "observed u/1 {" + noise + " password rotation_period ttl!static-creds username} []"
		raw   = "observed u/1 {_raw " + noise + " password rotation_period ttl!static-creds username} []"
		read  = "changed u/2@2 {" + noise + " password rotation_period ttl@2!static-creds username} [ttl] previous"
	)
	one, again := answer("one", "27", "86395"), answer("one", "27", "86330")
	withKey := func(key, rotated, ttl string) content {
		return withRaw(content{"username": "etl", "rsa_private_key": key, "rotation_period": "86400", "last_vault_rotation": rotated, "ttl": ttl})
	}
	inOneKey := func(password, rotated, ttl string) content {
		return content{"creds": withRaw(answer(password, rotated, ttl))["_raw"], "host": "db"}
	}
	for _, tt := range []struct {
		name   string
		states []state
	}{
		{"by the Vault Secrets Operator, with all of it once more", []state{
			{labelledByVSO, withRaw(answer("one", "27", "86395")), raw},
			{labelledByVSO, withRaw(answer("one", "27", "86330")), "changed u/2@2 {_raw " + noise + " password rotation_period ttl@2!static-creds username} [ttl] previous"},
			{
				labelledByVSO, withRaw(answer("two", "28", "86400")), "changed u/3@3 {_raw@3 last_vault_rotation@3!static-creds password@3 rotation_period " +
					"ttl@3!static-creds username} [_raw last_vault_rotation password ttl] previous",
			},
		}},
		{"by the Vault Secrets Operator, in another form", []state{
			{labelledByVSO, content{"DB_PASSWORD": "one", "_raw": `{"password": "one", "ttl": 9, "rotation_period": 99}`}, "observed u/1 {DB_PASSWORD _raw} []"},
			{labelledByVSO, content{"DB_PASSWORD": "one", "_raw": `{"password":"one","ttl":8,"rotation_period":99}`}, nothing},
			{
				labelledByVSO,
				content{"DB_PASSWORD": "one", "_raw": `{"password":"two","ttl":9,"rotation_period":99}`},
				"changed u/3@3 {DB_PASSWORD _raw@3} [_raw] previous",
			},
		}},
		{"by the Vault Secrets Operator, which has not created the Secret and leaves no other mark", []state{
			{metadata{}, withRaw(answer("one", "27", "86395")), raw},
			{metadata{}, withRaw(answer("one", "27", "86330")), "changed u/2@2 {_raw " + noise + " password rotation_period ttl@2!static-creds username} [ttl] previous"},
		}},
		{"by the Vault Secrets Operator, to be seen by the owner", []state{{ownedByVSO, one, found}, {ownedByVSO, again, read}}},
		{"by an ExternalSecret that owns it", []state{{ownedByESO, one, found}, {ownedByESO, again, read}}},
		{"by an ExternalSecret that merges", []state{{managedByESO, one, found}, {managedByESO, again, read}}},
		{"by an ExternalSecret that writes all of it into one key", []state{
			{ownedByESO, inOneKey("one", "27", "9"), "observed u/1 {creds host} []"},
			{ownedByESO, inOneKey("one", "27", "8"), nothing},
			{ownedByESO, inOneKey("two", "28", "9"), "changed u/3@3 {creds@3 host} [creds] previous"},
			{ownedByESO, inOneKey("two", "28", "8"), nothing},
		}},
		{"by an ExternalSecret that writes nothing else, and an earlier version has counted everything", []state{
			{ownedByESO.annotatedWith("keyturn.dev/keys", "all"), content{"creds": inOneKey("one", "27", "9")["creds"]}, "observed u/1 {creds} []"},
			{ownedByESO, content{"creds": inOneKey("two", "28", "9")["creds"]}, "changed u/2@2 {creds@2} [creds] previous"},
		}},
		{"by an ExternalSecret that writes all of it into a key that held something else", []state{
			{ownedByESO, content{"creds": "one", "host": "db"}, "observed u/1 {creds host} []"},
			{ownedByESO, inOneKey("one", "27", "9"), "changed u/2@2 {creds@2 host} [creds] previous"},
			{ownedByESO, inOneKey("one", "27", "8"), nothing},
		}},
		{"by an ExternalSecret that takes over the Secret", []state{
			{metadata{}, inOneKey("one", "27", "9"), "observed u/1 {creds host} []"},
			{ownedByESO, inOneKey("two", "28", "9"), "changed u/2@2 {creds@2 host} [creds] previous"},
		}},
		{"but not of what nobody is known to write", []state{
			{metadata{}, inOneKey("one", "27", "9"), "observed u/1 {creds host} []"},
			{metadata{}, inOneKey("one", "27", "8"), "changed u/2@2 {creds@2 host} [creds] previous"},
		}},
		{"but not of the configuration of a program", []state{
			{ownedByESO, content{"config.json": `{"password":"one","rotation_period":"7d"}`}, "observed u/1 {config.json} []"},
			{ownedByESO, content{"config.json": `{"password":"one","rotation_period":"8d"}`}, "changed u/2@2 {config.json@2} [config.json] previous"},
		}},
		{"with a key in the place of the password", []state{
			{labelledByVSO, withKey("one", "27", "9"), "observed u/1 {_raw " + noise + " rotation_period rsa_private_key ttl!static-creds username} []"},
			{
				labelledByVSO, withKey("one", "27", "8"),
				"changed u/2@2 {_raw " + noise + " rotation_period rsa_private_key ttl@2!static-creds username} [ttl] previous",
			},
			{
				labelledByVSO, withKey("two", "28", "9"), "changed u/3@3 {_raw@3 last_vault_rotation@3!static-creds rotation_period rsa_private_key@3 " +
					"ttl@3!static-creds username} [_raw last_vault_rotation rsa_private_key ttl] previous",
			},
		}},
		{"and with the user", []state{
			{ownedByESO, one, found},
			{
				ownedByESO,
				content{"username": "shop", "password": "one", "rotation_period": "86400", "last_vault_rotation": "27", "ttl": "86395"},
				"changed u/2@2 {" + noise + " password rotation_period ttl!static-creds username@2} [username] previous",
			},
		}},
		{"but by nobody who is known, everything counts", []state{
			{metadata{}, one, "observed u/1 {last_vault_rotation password rotation_period ttl username} []"},
		}},
		{"but of a password that is not of a static role, everything counts", []state{
			{labelledByVSO, content{"password": "one", "ttl": "60", "_raw": "{}"}, "observed u/1 {_raw password ttl} []"},
			{labelledByVSO, content{"password": "one", "ttl": "61", "_raw": "{ }"}, "changed u/2@2 {_raw@2 password ttl@2} [_raw ttl] previous"},
		}},
		{"but not without a password", []state{
			{labelledByVSO, content{"last_vault_rotation": "27", "ttl": "60"}, "observed u/1 {last_vault_rotation ttl} []"},
		}},
		{"but every key counts that is to count", []state{
			{ownedByVSO, one, found},
			{ownedByVSO.annotatedWith("keyturn.dev/keys", "all"), again, "changed u/2@2 {last_vault_rotation>2 password rotation_period ttl@2>2 username} [ttl] previous"},
			{
				ownedByVSO.annotatedWith("keyturn.dev/keys", "all"), answer("one", "27", "1"),
				"changed u/3@3 {last_vault_rotation>2 password rotation_period ttl@3 username} [ttl] previous",
			},
		}},
		{"and an earlier version has counted everything", []state{
			{
				labelledByVSO.annotatedWith("keyturn.dev/keys", "all"), withRaw(answer("one", "27", "9")),
				"observed u/1 {_raw last_vault_rotation password rotation_period ttl username} []",
			},
			{labelledByVSO, withRaw(answer("one", "27", "8")), "changed u/2@2 {_raw " + noise + " password rotation_period ttl@2!static-creds username} [ttl] previous"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { runStates(t, tt.states) })
	}
}

// The Secret does not say that an ExternalSecret with the creationPolicy Merge writes it, before External Secrets has labelled such Secrets.
func TestAnAnswerIsKnownByTheExternalSecretThatHasItAsTarget(t *testing.T) {
	for want, v := range map[string]*viewTest{
		"":                          viewOf(t, epoch),
		events.IgnoredAsStaticCreds: viewOf(t, epoch, reducedOf(t, externalSecretKind{}, externalSecretOf(t, testSource.Name, nil))),
	} {
		change, _ := (secretKind{}).Assess(v.View, nil, State{Now: kept(t, metadata{}, 1, answer("one", "27", "9"))})
		if got := change.Keys["ttl"].Ignored; got != want {
			t.Errorf("ttl is ignored %q, want %q", got, want)
		}
	}
}

func TestKeysThatAnAnnotationNamesDoNotCount(t *testing.T) {
	ignoring := func(value string) metadata { return metadata{}.annotatedWith("keyturn.dev/ignore-keys", value) }
	before, data := metadata{}, func(ttl string) content { return content{"a.jks": "1", "password": "1", "ttl": ttl} }
	for _, tt := range []struct {
		name   string
		states []state
	}{
		{"once it is set, and again once it is removed", []state{
			{before, data("1"), "observed u/1 {a.jks password ttl} []"},
			{ignoring("ttl, _raw, *.jks"), data("1"), "observed u/2 {a.jks!annotation password ttl!annotation} []"},
			{ignoring("ttl, _raw, *.jks"), data("2"), "changed u/3@3 {a.jks!annotation password ttl@3!annotation} [ttl] previous"},
			{ignoring("*.jks,ttl,,"), data("2"), nothing},
			{ignoring("*.jks"), data("2"), "observed u/5@3 {a.jks!annotation password ttl@3>5} []"},
			{before, data("2"), "observed u/6@3 {a.jks>6 password ttl@3>5} []"},
			{before, data("3"), "changed u/7@7 {a.jks>6 password ttl@7} [ttl] previous"},
		}},
		{"also a key that is added or removed", []state{
			{ignoring("t?l"), content{"password": "1"}, "observed u/1 {password} []"},
			{ignoring("t?l"), data("1"), "changed u/2@2 {a.jks@2 password ttl@2!annotation} [a.jks ttl] previous"},
			{ignoring("t?l"), content{"a.jks": "1", "password": "1"}, "changed u/3@3 {a.jks@2 password -ttl@3!annotation} [ttl] previous"},
			{before, content{"a.jks": "1", "password": "1"}, nothing},
			{before, data("1"), "changed u/5@5 {a.jks@2 password ttl@5} [ttl] previous"},
		}},
		{"but not the removal of one that it named, once it does not", []state{
			{ignoring("ttl"), data("1"), "observed u/1 {a.jks password ttl!annotation} []"},
			{ignoring("ttl"), content{"a.jks": "1", "password": "1"}, "changed u/2@2 {a.jks password -ttl@2!annotation} [ttl] previous"},
			{before, content{"a.jks": "1", "password": "2"}, "changed u/3@3 {a.jks password@3 -ttl@2>3} [password] previous"},
			{before, content{"a.jks": "1", "password": "2", "ttl": "2"}, "changed u/4@4 {a.jks password@3 ttl@4} [ttl] previous"},
		}},
		{"with a dot first", []state{
			{ignoring(".dockerc*"), content{".dockerconfigjson": "{}", "docker": "1"}, "observed u/1 {.dockerconfigjson!annotation docker} []"},
		}},
		{"but for an item that is none", []state{
			{ignoring("ttl, a b"), data("1"), `observed u/1 {a.jks password ttl!annotation} [] problem: keyturn.dev/ignore-keys: item "a b" is no key, ` +
				"nor a pattern of keys: allowed are letters, digits, -, _, ., * and ?"},
			{ignoring("ttl"), data("1"), "observed u/2 {a.jks password ttl!annotation} []"},
		}},
		{"besides those that the writer is known for", []state{
			{
				ownedByVSO.annotatedWith("keyturn.dev/ignore-keys", "rotation_*"), answer("one", "27", "1"),
				"observed u/1 {last_vault_rotation!static-creds password rotation_period!annotation ttl!static-creds username} []",
			},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { runStates(t, tt.states) })
	}
}

// An event says only of the keys that it lists whether they count.
func TestKeysThatAreNotListedDoNotMakeEventsForEver(t *testing.T) {
	ignoring := metadata{}.annotatedWith("keyturn.dev/ignore-keys", "key-*")
	c, data := chain{t: t}, numbered("key-", 0, events.MaxKeys+100)
	c.see(kept(t, metadata{}, 1, data), false)
	if got := c.see(kept(t, ignoring, 2, data), false); got == nothing || c.change.Keys["key-0000"].Ignored != events.IgnoredByAnnotation {
		t.Errorf("that keys do not count any more is %.100s", got)
	}
	if got := c.see(kept(t, ignoring, 3, data), false); got != nothing {
		t.Errorf("the same again is %.100s", got)
	}
}

func TestWhatIsWrongWithTheListOfKeysIsLoggedOnce(t *testing.T) {
	v := viewOf(t, epoch)
	var before *LastEvent
	for version := range 3 {
		now := kept(t, metadata{}.annotatedWith("keyturn.dev/ignore-keys", "a b"), version+1, content{"a": fmt.Sprint(version)})
		change, _ := (secretKind{}).Assess(v.View, before, State{Now: now})
		before = mustLast(t, change)
	}
	if lines := strings.Count(v.log.String(), "invalid annotation"); lines != 1 {
		t.Errorf("it is logged %d times:\n%s", lines, v.log.String())
	}
}

func TestOnlySoManyPatternsCount(t *testing.T) {
	for _, tt := range []struct {
		text, last, problem string
		count               int
	}{
		{strings.Repeat("a,", maxIgnored+1), "a", "only the first 100", maxIgnored},
		{strings.Repeat("a*,", maxWild+1) + "ttl", "ttl", "only the first 10", maxWild + 1},
		{strings.Repeat("?,", maxWild+1) + "ttl", "ttl", "only the first 10", maxWild + 1},
	} {
		patterns, problem := parseIgnored(tt.text)
		if len(patterns) != tt.count || patterns[tt.count-1] != tt.last || !strings.Contains(problem, tt.problem) {
			t.Errorf("%q: %q, and %q", tt.text, patterns, problem)
		}
	}
}

func FuzzParseIgnored(f *testing.F) {
	f.Add("ttl, _raw, *.jks", "ttl")
	f.Add("[a-,\\,**?*,\xff,"+strings.Repeat("*a", 200), "aaa")
	f.Fuzz(func(t *testing.T, text, name string) {
		patterns, problem := parseIgnored(text)
		if len(patterns) > maxIgnored || problem != events.HoldText(problem) {
			t.Errorf("%d patterns, and %q", len(patterns), problem)
		}
		for _, pattern := range patterns {
			if _, err := path.Match(pattern, name); err != nil {
				t.Errorf("%q is no pattern: %v", pattern, err)
			}
		}
	})
}

func FuzzCountedAnswer(f *testing.F) {
	f.Add([]byte(`{"password":"one","ttl":9,"last_vault_rotation":"27"}`))
	f.Add([]byte("null"))
	f.Add([]byte(`{"a":{"ttl":[1]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		counted := countedAnswer(raw)
		if again := countedAnswer(counted); string(again) != string(counted) {
			t.Errorf("%q counts as %q, and that as %q", raw, counted, again)
		}
	})
}
