package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// reloaderDefaults are the values of Reloader's chart, by path.
func reloaderDefaults(t *testing.T) map[string]any {
	t.Helper()
	content := testkit.ReadFile(t, "testdata/reloader-values.yaml")
	var values map[string]any
	testkit.Must(t, yaml.Unmarshal([]byte(content), &values))
	return values
}

// reloaderFile returns Reloader's values as in its file, with others in the place of some: lines of paths and values.
func reloaderFile(t *testing.T, others string) string {
	t.Helper()
	values := reloaderDefaults(t)
	testkit.Must(t, yaml.Unmarshal([]byte(others), &values))
	file := map[string]any{}
	for path, value := range values {
		if value == "(none)" {
			continue
		}
		fields := strings.Split(path, ".")
		in := file
		for _, field := range fields[:len(fields)-1] {
			if in[field] == nil {
				in[field] = map[string]any{}
			}
			in = in[field].(map[string]any)
		}
		in[fields[len(fields)-1]] = value
	}
	content, err := yaml.Marshal(file)
	testkit.Must(t, err)
	return string(content)
}

func TestReloadersFileIsTakenAsItIs(t *testing.T) {
	const defaults = `{image: {pullPolicy: IfNotPresent}, reloaderMode: true, reloader: {deployment: {revisionHistoryLimit: 2}}}`
	same(t, rendered(t, defaults), rendered(t, reloaderFile(t, "")))
}

// TestEachValueOfReloaderIsTakenOrRefused changes each of Reloader's values in its file, which must change the manifests as the table says, or be
// refused.
func TestEachValueOfReloaderIsTakenOrRefused(t *testing.T) {
	paths := map[string]bool{}
	for _, row := range reloaderValues {
		paths[row.path] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(reloaderDefaults(t))), slices.Sorted(maps.Keys(paths))); diff != "" {
		t.Errorf("paths (-Reloader's +table):\n%s", diff)
	}
	before := map[string]string{}
	for _, row := range reloaderValues {
		if before[row.with] != "" {
			continue
		}
		out, err := template(t, reloaderFile(t, row.with))
		if err != nil {
			t.Fatalf("with %q: %v\n%s", row.with, err, out)
		}
		before[row.with] = out
	}
	for _, row := range reloaderValues {
		t.Run(row.path, func(t *testing.T) {
			t.Parallel()
			out, err := template(t, reloaderFile(t, row.path+": "+row.value+"\n"+row.with))
			if refusal, refused := strings.CutPrefix(row.want, "refused: "); refused {
				if err == nil || !strings.Contains(out, ": "+row.path+": "+refusal) {
					t.Errorf("got %v, want it refused: %q in\n%s", err, refusal, out)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			without := before[row.with]
			line, isSo := strings.CutPrefix(row.want, "so anyway: ")
			if isSo {
				if out != without || !hasLine(out, line) {
					t.Errorf("want no change and the line %q in\n%s", line, out)
				}
				return
			}
			gone, isGone := strings.CutPrefix(line, "gone: ")
			if hasLine(out, gone) == isGone || hasLine(without, gone) != isGone {
				t.Errorf("want %q to be in one of the manifests: got %t without the value, %t with it", line, hasLine(without, gone), hasLine(out, gone))
			}
		})
	}
}

// hasLine reports whether lines of a manifest follow each other, whatever their indentation.
func hasLine(manifests, lines string) bool {
	var trimmed strings.Builder
	for line := range strings.Lines(manifests) {
		trimmed.WriteString("\n" + strings.TrimSpace(line))
	}
	return strings.Contains(trimmed.String()+"\n", "\n"+lines+"\n")
}

// TestTheReloaderPageHasAllOfReloader holds docs/reference/reloader.md to the values and flags of Reloader.
func TestTheReloaderPageHasAllOfReloader(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/reference/reloader.md")
	names := map[string]bool{}
	for path := range reloaderDefaults(t) {
		name, isReloaders := strings.CutPrefix(path, "reloader.")
		if !isReloaders {
			names[strings.Split(path, ".")[0]] = true
			continue
		}
		fields := strings.Split(name, ".")
		if fields[0] == "deployment" && len(fields) > 1 {
			fields[0] += "." + fields[1]
		}
		names[fields[0]] = true
	}
	for name := range strings.FieldsSeq(reloaderFlags) {
		names[name] = true
	}
	for name := range names {
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "`"+name+".") {
			t.Errorf("%s is not on the page", name)
		}
	}
}
