package workload

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// wantTest is a test of whether one workload wants one source.
type wantTest struct {
	name string
	// on and pods are the annotations of the workload and of its pod template.
	on, pods map[string]string
	// all is --roll-all, and strict is --reloader.
	all, strict bool
	// of is the source, ref the reference to it, and match says that it has Reloader's annotation.
	of    string
	ref   *Reference
	match bool

	want WantReason
	// keys, except and named are separated by spaces.
	keys, except string
	named        string
	// by is the annotation and the item that must have decided, as "<annotation>: <item>". If empty, it is not compared.
	by string
}

// String returns the name of a reason, for what a test says of it.
func (r WantReason) String() string {
	return [...]string{
		NotWanted: "not-wanted", Excluded: "excluded", OnlyPulled: "pulled-only", KeyNotRead: "key-not-read",
		byName: "by-name", bySearch: "by-search", byAuto: "by-auto", byAll: "by-all",
	}[r]
}

func runWantTests(t *testing.T, tests []wantTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			optIn, errs := parseOptIn(tt.on, tt.pods, Reading{All: tt.all, Reloader: tt.strict})
			if len(errs) > 0 {
				t.Fatalf("errors %v", errs)
			}
			want := optIn.Wants(source(t, tt.of), tt.ref, tt.match)
			if want.Reason != tt.want {
				t.Errorf("reason %s, want %s", want.Reason, tt.want)
			}
			if keys := strings.Join(want.Keys, " "); keys != tt.keys {
				t.Errorf("keys %q, want %q", keys, tt.keys)
			}
			if except := strings.Join(want.Except, " "); except != tt.except {
				t.Errorf("all but %q, want all but %q", except, tt.except)
			}
			if named := strings.Join(want.Named, " "); named != tt.named {
				t.Errorf("names %q, want %q", named, tt.named)
			}
			if by := want.Annotation + ": " + want.Item; tt.by != "" && by != tt.by {
				t.Errorf("decided by %q, want %q", by, tt.by)
			}
			if optIn.Empty() && (want.Wanted() || want.Reason == OnlyPulled) {
				t.Error("it is empty, but wants a source")
			}
		})
	}
}

func source(t testing.TB, text string) events.Source {
	t.Helper()
	source, err := events.ParseSource(text)
	testkit.Must(t, err)
	source.Namespace = "shop"
	return source
}

func rollOn(text string) map[string]string { return map[string]string{AnnotationRollOn: text} }

// reads returns a reference that reads the keys, or all if there are none.
func reads(keys ...string) *Reference { return &Reference{Keys: keys} }

func pulls() *Reference { return &Reference{ByPull: true} }

func TestOptInOfBoth(t *testing.T) {
	runWantTests(t, []wantTest{
		{name: "a workload that says nothing wants nothing", of: "secret/db", ref: reads(), match: true, want: NotWanted},
		{
			name: "what roll-on includes and what Reloader's annotations include is joined: roll-on's",
			on:   map[string]string{AnnotationRollOn: "secret/db", "configmap.reloader.stakater.com/reload": "app"},
			of:   "secret/db", want: byName, by: "keyturn.dev/roll-on: secret/db",
		},
		{
			name: "an exclusion of roll-on beats Reloader's names",
			on:   map[string]string{AnnotationRollOn: "!secret/db", "secret.reloader.stakater.com/reload": "db"}, of: "secret/db",
			ref: reads(), want: Excluded, by: "keyturn.dev/roll-on: !secret/db",
		},
		{
			name: "none beats Reloader's annotations",
			on:   map[string]string{AnnotationRollOn: "none", "reloader.stakater.com/auto": "true", "secret.reloader.stakater.com/reload": "db"},
			of:   "secret/db", ref: reads(), want: NotWanted,
		},
		{
			name: "an exclusion of a key beats Reloader's auto, for that key",
			on:   map[string]string{AnnotationRollOn: "!secret/db#ttl", "reloader.stakater.com/auto": "true"}, of: "secret/db",
			ref: reads(), want: byAuto, except: "ttl",
		},
		{
			name: "an exclusion by Reloader's annotation beats a key that is named",
			on:   map[string]string{AnnotationRollOn: "secret/db#ttl", "secrets.exclude.reloader.stakater.com/reload": "db"}, of: "secret/db",
			ref: reads(), want: Excluded,
		},
		{name: "with roll-all an exclusion of a key leaves out that key", all: true, on: rollOn("!secret/db#ttl"), of: "secret/db", ref: reads(), want: byAll, except: "ttl"},
		{name: "with roll-all a workload that says nothing wants what it references", all: true, of: "secret/db", ref: reads("user"), want: byAll, keys: "user"},
		{name: "with roll-all none opts out", all: true, on: rollOn(" none "), of: "secret/db", ref: reads(), want: NotWanted},
		{name: "with roll-all a list stands for itself", all: true, on: rollOn("configmap/app"), of: "secret/db", ref: reads(), want: NotWanted},
	})
}

func FuzzParseOptIn(f *testing.F) {
	f.Add("auto", "app-.*|b", "true", "noisy", true, false)
	f.Add("secret/db#password, configmap/app-*,!configmap/noisy", "(", "false", "a b", false, true)
	f.Add("none", `\Qa`, "", "", true, true)
	f.Add("openbao:kv/shop/db,secret/,secret/a#", "((x{100}){10}){10}", "maybe", ",,", false, false)
	f.Add("openbao:main:kv/shop/db,openbao:main:,openbao::a/b,openbao:kv:2/*#a:b", "", "", "", false, false)
	f.Add("secret/["+strings.Repeat("*a", 40), `\pL{1000}`, "T", "*", true, false)
	f.Add("auto,!secret/db#ttl,!secret/*#_raw,!secret/a#*", "db", "", "canary", true, false)
	f.Add("secret/db#*", "foo|bar, a.b ,^c$,(?i)D", "1", "", false, true)
	f.Add("", "a)|(b,"+strings.Repeat("(x{100})", 12), "", "canary.", true, true)
	f.Fuzz(func(t *testing.T, rollOn, named, auto, exclude string, all, strict bool) {
		workload := map[string]string{
			AnnotationRollOn:                               "secret/canary," + rollOn,
			"secret.reloader.stakater.com/reload":          named + ",canary",
			"reloader.stakater.com/auto":                   auto,
			"secrets.exclude.reloader.stakater.com/reload": exclude,
		}
		template := map[string]string{"configmap.reloader.stakater.com/reload": named, AnnotationRollOn: rollOn}
		reading := Reading{All: all, Reloader: strict}
		optIn, errs := parseOptIn(workload, template, reading)
		for _, err := range errs {
			if item, ok := errors.AsType[*itemError](err); !ok || item.annotation == "" || item.problem == "" || len(err.Error()) > 2000 {
				t.Errorf("error %q is not a short line about one item", err)
			}
		}
		again, _ := parseOptIn(workload, template, reading)
		for _, text := range []string{"secret/canary", "configmap/canary", "configmap/app-a.b", "secret/x" + named} {
			source := source(t, text)
			for _, ref := range []*Reference{nil, reads(), reads("a", "password"), pulls()} {
				for _, match := range []bool{false, true} {
					want := optIn.Wants(source, ref, match)
					if !reflect.DeepEqual(want, again.Wants(source, ref, match)) {
						t.Errorf("%s is wanted differently the second time", text)
					}
					if want.Keys != nil && (!want.Wanted() || len(want.Keys) == 0 || !slices.IsSorted(want.Keys)) {
						t.Errorf("keys %q do not fit %s", want.Keys, want.Reason)
					}
					named := want.Reason == byName && (slices.Contains(optIn.names("shop"), source) || optIn.HasPatterns(source.Kind))
					if want.Wanted() && ref == nil && !named {
						t.Errorf("%s is wanted %s, is not referenced, and an index would not find it", text, want.Reason)
					}
				}
			}
		}
		if strings.Contains(rollOn, "!") || slices.Contains(strings.FieldsFunc(exclude, func(r rune) bool { return r == ',' || r <= ' ' }), "canary") {
			return
		}
		if len(workload[AnnotationRollOn]) <= maxAnnotation {
			if want := optIn.Wants(source(t, "secret/canary"), nil, false); want.Reason != byName || want.Keys != nil {
				t.Errorf("among others the valid item is %+v", want)
			}
		}
	})
}
