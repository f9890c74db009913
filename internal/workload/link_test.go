package workload

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// linkState is a state of the Deployment web, which reads keys of Secrets.
type linkState struct {
	version, rollOn string
	// reads are Secrets with a key, such as "db#user".
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
		name, key, _ := strings.Cut(text, "#")
		env = append(env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
		}}})
	}
	k, _ := BuiltIn().Named("deployment")
	w, ok := Read(k, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", ResourceVersion: s.version, Annotations: map[string]string{AnnotationRollOn: s.rollOn},
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Env: env}}}}},
	}, Reading{})
	if !ok || len(w.Problems) > 0 {
		t.Fatal(w.Problems)
	}
	w.ID.UID = "uid" + s.uid
	if s.record != "" {
		w.Rolled = map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: s.record, UID: "u"}}
	}
	return w
}

func TestALinkIsAsOldAsTheWriteThatMadeIt(t *testing.T) {
	user, all := []string{"db#user"}, []string{"db#user", "db#password"}
	tests := []struct {
		name   string
		states []linkState
		// relinked says that the last state may want other sources than the one before, and version is that of the link to db.
		relinked bool
		version  string
	}{
		{"nothing is known of what is seen first", []linkState{{version: "10", rollOn: "auto", reads: user}}, false, ""},
		{"a workload that is created", []linkState{{version: "10", rollOn: "auto", reads: user, since: "10"}}, true, "10"},
		{"an opt-in", []linkState{{version: "10", rollOn: "none", reads: user}, {version: "20", rollOn: "auto", reads: user, since: "20"}}, true, "20"},
		{"one more key", []linkState{{version: "10", rollOn: "auto", reads: user}, {version: "20", rollOn: "auto", reads: all, since: "20"}}, true, "20"},
		{"an opt-out ends it", []linkState{{version: "10", rollOn: "auto", reads: user, since: "10"}, {version: "20", rollOn: "none", reads: user, since: "20"}}, false, ""},
		{
			"what is recorded ends it",
			[]linkState{{version: "10", rollOn: "auto", reads: user, since: "10"}, {version: "30", rollOn: "auto", reads: user, since: "30", record: "20"}},
			false, "",
		},
		{
			"what was recorded before does not",
			[]linkState{
				{version: "10", rollOn: "none", reads: user, record: "5"},
				{version: "20", rollOn: "auto", reads: user, since: "20", record: "5"},
				{version: "30", rollOn: "auto", reads: user, since: "30", record: "5"},
			},
			false, "20",
		},
		{"another workload of this name", []linkState{{version: "10", rollOn: "auto", reads: user}, {version: "5", rollOn: "auto", reads: user, since: "5", uid: "2"}}, true, "5"},
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
			link, ok := w.Link(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"})
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
	everyStore := StoreAccess{Grants: []StoreGrant{{Namespaces: []string{"*"}, Store: "*", Paths: []string{"*"}}}}
	release := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "release-1"}
	inStore := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}.Source()
	read := func(version string, annotations map[string]string) *Workload {
		w, ok := Read(deployments, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: version, Annotations: annotations},
		}, Reading{Stores: everyStore})
		if !ok || len(w.Problems) > 0 {
			t.Fatal(w.Problems)
		}
		return w
	}
	tests := []struct {
		name           string
		before, after  map[string]string
		source         events.Source
		record, linked bool
	}{
		{"a pattern", rollOn("auto"), rollOn("configmap/release-*"), release, false, true},
		{"a path", rollOn("auto"), rollOn("openbao:secret/shop/db"), inStore, false, true},
		{"a wider pattern", rollOn("configmap/release-*"), rollOn("configmap/*"), release, false, false},
		{"a pattern whose source is recorded since", rollOn("auto"), rollOn("configmap/release-*"), release, true, false},
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
