package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// linkState is a state of the Deployment web, which reads keys of Secrets.
type linkState struct {
	version, rollOn string
	// reads are Secrets with a key, such as "db#user", or "db#user?" if that is optional.
	reads []string
	// since is what is known of the time before. Empty means nothing.
	since string
	uid   string
	// record is the resourceVersion in the record of db.
	record string
}

func (s linkState) read(t *testing.T) *Workload {
	t.Helper()
	var env []corev1.EnvVar
	for _, text := range s.reads {
		text, optional := strings.CutSuffix(text, "?")
		name, key, _ := strings.Cut(text, "#")
		env = append(env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
		}}})
	}
	deployment := webDeployment(s.version, rollOn(s.rollOn))
	deployment.UID, deployment.Spec.Template.Spec.Containers = types.UID("uid"+s.uid), []corev1.Container{{Name: "app", Env: env}}
	w := readAs(t, deployments, deployment, Reading{Stores: StoreAccess{Grants: []StoreGrant{{Namespaces: []string{"*"}, Store: "*", Paths: []string{"*"}}}}})
	if len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	if s.record != "" {
		w.Rolled = map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: s.record, UID: "u"}}
	}
	return w
}

func TestALinkIsAsOldAsTheWriteThatMadeIt(t *testing.T) {
	user, all := []string{"db#user"}, []string{"db#user", "db#password"}
	// A state that was seen is one of which nothing is known of before, and one that was written follows from the state before.
	seen := func(version, rollOn string, reads []string) linkState {
		return linkState{version: version, rollOn: rollOn, reads: reads}
	}
	wrote := func(version, rollOn string, reads []string) linkState {
		return linkState{version: version, rollOn: rollOn, reads: reads, since: version}
	}
	recorded := func(s linkState, version string) linkState { s.record = version; return s }
	tests := []struct {
		name   string
		states []linkState
		// relinked says that the last state may want other sources than the one before, and version is that of the link to db.
		relinked bool
		version  string
	}{
		{"nothing is known of what is seen first", []linkState{seen("10", "auto", user)}, false, ""},
		{"a workload that is created", []linkState{wrote("10", "auto", user)}, true, "10"},
		{"an opt-in", []linkState{seen("10", "none", user), wrote("20", "auto", user)}, true, "20"},
		{"one more key", []linkState{seen("10", "auto", user), wrote("20", "auto", all)}, true, "20"},
		{"a key that is not excluded any more", []linkState{seen("10", "auto, !secret/db#user", all), wrote("20", "auto", all)}, true, "20"},
		{"a key that becomes optional", []linkState{seen("10", "auto", user), wrote("20", "auto", []string{"db#user?"})}, true, ""},
		{"an exclusion of a key", []linkState{seen("10", "auto", all), wrote("20", "auto, !secret/db#user", all)}, true, ""},
		{"an opt-out ends it", []linkState{wrote("10", "auto", user), wrote("20", "none", user)}, false, ""},
		{"what is recorded ends it", []linkState{wrote("10", "auto", user), recorded(wrote("30", "auto", user), "20")}, false, ""},
		{
			"what was recorded before does not",
			[]linkState{
				recorded(seen("10", "none", user), "5"), recorded(wrote("20", "auto", user), "5"), recorded(wrote("30", "auto", user), "5"),
			},
			false, "20",
		},
		{
			"another workload of this name",
			[]linkState{seen("10", "auto", user), {version: "5", rollOn: "auto", reads: user, since: "5", uid: "2"}},
			true, "5",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var w *Workload
			relinked := false
			for _, state := range test.states {
				next := state.read(t)
				relinked = next.LinkAfter(w, state.since)
				w = next
			}
			if relinked != test.relinked {
				t.Errorf("it may want other sources: %t", relinked)
			}
			link, ok := w.Link(db)
			if link.Version != test.version || ok != (test.version != "") {
				t.Errorf("got %+v (%t), want since %q", link, ok, test.version)
			}
			if ok && len(w.links) == 0 {
				t.Error("it has no links")
			}
		})
	}
}

func TestWhatAPatternNamesAndWhatIsInAStoreIsLinked(t *testing.T) {
	release := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "release-1"}
	inStore := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}.Source()
	read := func(version, rollOn string) *Workload { return linkState{version: version, rollOn: rollOn}.read(t) }
	tests := []struct {
		name           string
		before, after  string
		source         events.Source
		record, linked bool
	}{
		{"a pattern", "auto", "configmap/release-*", release, false, true},
		{"a path", "auto", "openbao:secret/shop/db", inStore, false, true},
		{"a wider pattern", "configmap/release-*", "configmap/*", release, false, false},
		{"all keys where one was excluded", "secret/db, !secret/db#ttl", "secret/db", db, false, true},
		{"all keys but one", "secret/db", "secret/db, !secret/db#ttl", db, false, false},
		{"a key that is named besides all", "secret/db", "secret/db, secret/db#ttl", db, false, false},
		{"a pattern whose source is recorded since", "auto", "configmap/release-*", release, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, w := read("10", test.before), read("20", test.after)
			w.LinkAfter(before, "20")
			if test.record {
				later := read("30", test.after)
				later.Rolled = map[string]RolledFor{test.source.String(): {Fingerprint: fp("a"), Version: "25", UID: "u"}}
				later.LinkAfter(w, "30")
				w = later
			}
			if link, linked := w.Link(test.source); linked != test.linked || linked && link.Version != "20" {
				t.Errorf("got %+v (%t), want since 20: %t", link, linked, test.linked)
			}
		})
	}
}
