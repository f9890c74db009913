package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// widgets is the configuration of a kind, with a replacement for its last lines.
func widgets(rest string) string {
	return "targets:\n- apiVersion: example.org/v1\n  kind: Widget\n  resource: widgets\n" + rest
}

const (
	readsSecrets = "  reads: [{kind: secret, path: 'spec.secrets[*]'}]\n"
	annotates    = "  trigger: {annotations: spec.podAnnotations}\n"
)

func TestTheFileOfTargetsIsChecked(t *testing.T) {
	const at = "--targets-config: file: targets[0]."
	tests := []struct{ name, content, want string }{
		{"it is right", widgets(readsSecrets + annotates), ""},
		{"the name is taken", widgets(readsSecrets + annotates + "  name: deployment\n"), at + `name: "deployment" is another kind of workload, want a name of its own`},
		{
			"an ExternalSecret, of which nothing else is told", `targets:
- apiVersion: external-secrets.io/v1
  kind: ExternalSecret
  resource: externalsecrets
  reads:
  - {kind: configmap, path: "spec.target.template.templateFrom[*].configMap.name"}
  - {kind: secret, path: "spec.target.template.templateFrom[*].secret.name"}
  trigger: {field: "metadata.annotations['force-sync']", value: now}
`, at + `apiVersion: "external-secrets.io/v1" is not of a custom resource that can be a target: ` +
				"an ExternalSecret is synced by --force-sync, also when a Secret or ConfigMap that its templateFrom names changes",
		},
		{
			"a Rollout", "targets: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, resource: rollouts}]",
			at + `apiVersion: "argoproj.io/v1alpha1" is not of a custom resource that can be a target: a Rollout is rolled without one`,
		},
		{
			"a kind of Kubernetes", "targets: [{apiVersion: apps/v1, kind: Deployment, resource: deployments, trigger: {annotations: spec.template}}]",
			at + `apiVersion: "apps/v1", want the group and the version of a custom resource, such as example.org/v1`,
		},
		{
			"the kind is no name", "targets: [{apiVersion: example.org/v1, kind: Job, resource: jobs, trigger: {annotations: spec.template}}]",
			at + `name: is empty, and the kind in lower case cannot be used: "job" is another kind of workload, want a name of its own`,
		},
		{
			"two have a name", widgets(readsSecrets+annotates) + strings.TrimPrefix(widgets(readsSecrets+annotates), "targets:\n"),
			`--targets-config: file: targets[1].name: "widget" is the name of widgets.example.org, too, want another one for one of them`,
		},
		{
			"what is ignored is no source", widgets(readsSecrets + annotates + "  ignores: [everything]\n"),
			at + `ignores[0]: "everything", want <kind>/<name>, where <name> may have *, ? and {name}`,
		},
		{
			"the trigger is the status", widgets(readsSecrets + "  trigger: {field: status.phase, value: time}\n"),
			at + `trigger.field: "status.phase", want a field below spec, not through a list, or metadata.annotations['<name>']`,
		},
		{
			"the trigger is the record", widgets(readsSecrets + "  trigger: {field: \"metadata.annotations['keyturn.dev/rolled']\", value: time}\n"),
			at + `trigger.field: "metadata.annotations['keyturn.dev/rolled']" is an annotation of Keyturn, want another one`,
		},
		{
			"what is owned gets no annotations", widgets("  trigger: {field: spec.restart, value: time}\n  status: {owned: true}\n"),
			at + "status.owned: want it with trigger.annotations, which are looked for on what the object owns",
		},
		{
			"everything is told at once", widgets("  template: '*'\n  trigger: {}\n  status: {failed: [{equals: a}]}\n"),
			at + `template: "*" a name has letters, digits, - and _; others are written as ['name']` + "\n" +
				at + "trigger: want either annotations or field\n" +
				at + "status.failed[0].path: is empty, want a path such as spec.secretName",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseTargets([]byte(tt.content), "file", nil)
			testkit.WantError(t, err, tt.want)
		})
	}
}

func TestTargetsAreReadFromAFolderAsAConfigMapIsMounted(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	gadgets := strings.NewReplacer("Widget", "Gadget", "widgets", "gadgets").Replace(widgets(readsSecrets + annotates))
	_, err := ReadTargets(dir)
	testkit.WantError(t, err, "--targets-config: the folder has no file whose name ends in .yaml or .yml")
	write("b.yml", widgets(readsSecrets+annotates))
	write("a.yaml", gadgets)
	write("README.md", "no targets")
	testkit.Must(t, os.Mkdir(filepath.Join(dir, "..2026_11_23.yaml"), 0o700))
	kinds, err := ReadTargets(dir)
	testkit.Must(t, err)
	if got := strings.Join(kinds.Names(), " "); got != "gadget widget" {
		t.Errorf("kinds: got %s, want those of both files, in their order", got)
	}
	write("c.yaml", gadgets)
	_, err = ReadTargets(dir)
	testkit.WantError(t, err,
		`--targets-config: c.yaml: targets[0].name: "gadget" is the name of gadgets.example.org, too, want another one for one of them`)
}

func TestEveryRecipeIsValid(t *testing.T) {
	recipes, err := filepath.Glob("../../deploy/targets/*/*.yaml")
	testkit.Must(t, err)
	all := t.TempDir()
	for _, path := range recipes {
		if filepath.Base(path) != filepath.Base(filepath.Dir(path))+".yaml" || filepath.Base(path) == "policy.yaml" {
			continue // It is a manifest.
		}
		content, err := os.ReadFile(path)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(all, filepath.Base(path)), content, 0o600))
	}
	kinds, err := ReadTargets(all)
	if err != nil || len(kinds) == 0 {
		t.Errorf("all recipes together: got %d kinds, %v", len(kinds), err)
	}
}

func FuzzParseTargets(f *testing.F) {
	f.Add([]byte(widgets(readsSecrets+annotates)), "a")
	f.Add([]byte(widgets("  template: spec.template\n  ignores: ['secret/{name}-*']\n  trigger: {field: spec.at, value: time}\n"+
		"  status: {observedGeneration: status.observedGeneration, done: [{path: status.at, equalsPath: spec.at}]}\n")), "b")
	f.Fuzz(func(t *testing.T, content []byte, name string) {
		kinds, err := parseTargets(content, "file", nil)
		if err != nil {
			return
		}
		for _, k := range kinds {
			object := widgetOf(name, nil, nil)
			w, ok := Read(k, object, Reading{})
			if !ok {
				t.Fatalf("%s: an object cannot be read", k.Name)
			}
			patch := patchFor(t, k, w, roll("1"))
			after := patched(t, object, patch)
			if again, _ := Read(k, after, Reading{}); again.Revision != patch.Revision {
				t.Fatalf("%s: got revision %q after the patch to %q", k.Name, again.Revision, patch.Revision)
			}
		}
	})
}
