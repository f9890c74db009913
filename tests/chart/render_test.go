package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// folder is the chart, and systemNamespace the namespace that the manifests of kustomize are written for.
const (
	folder          = "../../deploy/chart"
	systemNamespace = "keyturn-system"
)

// helm runs helm with values, isolated from the user's configuration, and returns both of its outputs.
func helm(t *testing.T, values string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), build.Tool(t, build.Helm), append(args, "--values", "-")...)
	home := t.TempDir()
	// A process lives for a tenth of a second. Collecting its garbage would make that half as long again.
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "GOGC=off")
	cmd.Stdin = strings.NewReader(values)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// renderings has what template has rendered, by the values: a fifth of all is wanted by several tests.
var renderings sync.Map

// template renders the chart with values, in YAML, without the objects of helm test.
func template(t *testing.T, values string) (string, error) {
	t.Helper()
	if out, known := renderings.Load(values); known {
		return out.(string), nil
	}
	out, err := helm(t, values, "template", "keyturn", folder, "--skip-tests", "--namespace", systemNamespace)
	if err == nil {
		renderings.Store(values, out)
	}
	return out, err
}

// rendered are the objects that the chart makes with values.
func rendered(t *testing.T, values string) map[string]object {
	t.Helper()
	out, err := template(t, values)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return objects(t, out)
}

// refuses holds that the chart has an error for values, which says what is wanted.
func refuses(t *testing.T, values, want string) {
	t.Helper()
	if out, err := template(t, values); err == nil || !strings.Contains(out, want) {
		t.Errorf("with %s: got %v, want %q in\n%s", values, err, want, out)
	}
}

// releasedIn is what the chart makes with values in a namespace, the objects of helm test among it.
func releasedIn(t *testing.T, namespace, values string) string {
	t.Helper()
	out, err := helm(t, values, "template", "keyturn", folder, "--namespace", namespace)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// withTests are the objects that the chart makes with values, those of helm test among them.
func withTests(t *testing.T, values string) map[string]object {
	t.Helper()
	return objects(t, releasedIn(t, systemNamespace, values))
}

// kustomized are the objects of a folder of deploy with components of deploy/components.
func kustomized(t *testing.T, base string, components ...string) map[string]object {
	t.Helper()
	return objects(t, built(t, overlay(t, "", base, components...)))
}

// overlay is a folder with an overlay of a folder of deploy with components, and with more in its kustomization. A component with a slash in its name is
// not in deploy/components.
func overlay(t *testing.T, more, base string, components ...string) string {
	t.Helper()
	dir := t.TempDir()
	var content strings.Builder
	fmt.Fprintf(&content, "resources: [%s]\ncomponents:\n", deployFrom(t, dir, base))
	for _, component := range components {
		if !strings.Contains(component, "/") {
			component = "components/" + component
		}
		fmt.Fprintf(&content, "- %s\n", deployFrom(t, dir, component))
	}
	testkit.WriteFile(t, filepath.Join(dir, "kustomization.yaml"), content.String()+more)
	return dir
}

// built are the manifests of a kustomization.
func built(t *testing.T, dir string) string {
	t.Helper()
	out, err := testbed.Kustomize(t.Context(), os.Stderr, dir)
	testkit.Must(t, err)
	return string(out)
}

// deployFrom is the path of a folder of deploy from a folder in which there is a kustomization.
func deployFrom(t *testing.T, dir, folder string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "deploy", folder))
	testkit.Must(t, err)
	if path, err = filepath.Rel(dir, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// object is one object of a manifest.
type object map[string]any

// at returns the value at a path of fields, or nil.
func (o object) at(fields ...string) any {
	var value any = map[string]any(o)
	for _, field := range fields {
		in, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = in[field]
	}
	return value
}

// generated is a name that ends with a digest: a ConfigMap of kustomize, or the job of the keys. Digests of kustomize have no
// vowels, so that no word is taken for one.
var generated = regexp.MustCompile(`\b(keyturn|keyturn-nats|keyturn-keys|keyturn-store-access|keyturn-targets|keyturn-projections)-(?:[2456789bcdfghkmt]{10}|[0-9a-f]{8})\b`)

// objects parses manifests, by kind, namespace and name. It removes what cannot be equal in Helm and Kustomize: digests in names
// and annotations, annotations for Flux, the Namespace, which Helm creates itself, the registry of the image, which overlays name, a setting that
// says nothing, which deploy/namespace reads, and the order of the rules in roles and network policies.
func objects(t *testing.T, manifests string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for document := range bytes.SplitSeq([]byte(manifests), []byte("\n---\n")) {
		text := strings.ReplaceAll(generated.ReplaceAllString(string(document), "$1"), "image: ghcr.io/keyturn/keyturn:", "image: keyturn:")
		o := object{}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(o) == 0 || o["kind"] == "Namespace" {
			continue
		}
		normalise(o)
		name := fmt.Sprintf("%s %v/%v", o["kind"], o.at("metadata", "namespace"), o.at("metadata", "name"))
		if _, twice := all[name]; twice {
			t.Fatalf("%s is there twice", name)
		}
		all[name] = o
	}
	return all
}

func normalise(o object) {
	for _, metadata := range []any{o["metadata"], o.at("spec", "template", "metadata")} {
		metadata, _ := metadata.(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, "checksum/config")
		delete(annotations, "kustomize.toolkit.fluxcd.io/force")
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	if settings, ok := o["data"].(map[string]any); ok && settings["KEYTURN_NAMESPACES"] == "" {
		delete(settings, "KEYTURN_NAMESPACES")
	}
	if rules, ok := o["rules"].([]any); ok {
		o["rules"] = rights(rules)
	}
	if rules, ok := o.at("spec", "egress").([]any); ok {
		slices.SortFunc(rules, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}

// rights are what rules allow, one line for each verb on each resource: "get leases.coordination.k8s.io `name`", where the name is
// there only if it is one object's.
func rights(rules []any) []string {
	var lines []string
	for _, rule := range rules {
		rule := object(rule.(map[string]any))
		for _, group := range rule["apiGroups"].([]any) {
			for _, resource := range rule["resources"].([]any) {
				for _, verb := range rule["verbs"].([]any) {
					line := strings.TrimSuffix(fmt.Sprintf("%s %s.%s", verb, resource, group), ".")
					names, _ := rule["resourceNames"].([]any)
					if len(names) == 0 {
						lines = append(lines, line)
					}
					for _, name := range names {
						lines = append(lines, fmt.Sprintf("%s `%s`", line, name))
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
