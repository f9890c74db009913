package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// readme is the page of the chart. What is before the table of its values is written by hand.
const (
	readme = folder + "/README.md"
	table  = "| Value | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"
)

// schema is what values.schema.json says of a value.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Enum       []any             `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Defs       map[string]schema `json:"$defs"`
}

// name is the type of a value for a reader.
func (s schema) name(defs map[string]schema) string {
	if s.Ref != "" {
		return defs[strings.TrimPrefix(s.Ref, "#/$defs/")].name(defs)
	}
	if s.Enum != nil {
		var values []string
		for _, value := range s.Enum {
			if value == "" {
				value = `""`
			}
			values = append(values, fmt.Sprintf("`%v`", value))
		}
		return strings.Join(values, ", ")
	}
	if types, several := s.Type.([]any); several {
		var names []string
		for _, name := range types {
			names = append(names, fmt.Sprint(name))
		}
		return strings.Join(names, " or ")
	}
	return fmt.Sprint(s.Type)
}

// of returns the schema of the value at a path, if it has one.
func (s schema) of(path string, defs map[string]schema) (schema, bool) {
	for name := range strings.SplitSeq(path, ".") {
		if s.Ref != "" {
			s = defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		}
		var known bool
		if s, known = s.Properties[name]; !known {
			return schema{}, false
		}
	}
	return s, true
}

// value is one of values.yaml, with its default and its comment.
type value struct{ path, text, comment string }

const below = "see values.yaml"

var (
	valueLine = regexp.MustCompile(`^( *)([A-Za-z]+):(?: (.*))?$`)
	// A page is read outside of the repository, too.
	pageName = regexp.MustCompile(`docs/((?:[a-z-]+/)?([a-z-]+))\.md`)
)

// values reads the lines of values.yaml, in which each value has a line of its own, or more of a list or a map below it.
func values(content string) []value {
	var all []value
	var path, comment []string
	list := "" // The indentation of the elements of a list.
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		text := strings.TrimSpace(line)
		match := valueLine.FindStringSubmatch(line)
		switch {
		case text == "":
			comment = nil
		case strings.HasPrefix(text, "#"):
			if example := strings.HasPrefix(text, "#  "); !example {
				comment = append(comment, strings.TrimSpace(text[1:]))
			}
		case strings.HasPrefix(text, "- "):
			list = line[:strings.Index(line, "-")]
			all[len(all)-1].text = below
		case match != nil && (list == "" || len(match[1]) < len(list)):
			list = ""
			depth := len(match[1]) / 2
			path = append(path[:min(depth, len(path))], match[2])
			all = append(all, value{strings.Join(path, "."), match[3], strings.Join(comment, " ")})
			comment = nil
		}
	}
	return all
}

func TestTheExampleOfTheReadmeIsTaken(t *testing.T) {
	_, example, _ := strings.Cut(testkit.ReadFile(t, readme), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	all := rendered(t, example)
	if all["PrometheusRule keyturn-system/keyturn"] == nil || all["ConfigMap keyturn-system/keyturn-dashboard"] != nil {
		t.Error("want the alerts without the dashboard")
	}
}

// mostValues is how many values a reader is asked to go through.
const mostValues = 105

func TestTheChartHasNoMoreValuesThanAReaderTakes(t *testing.T) {
	content := testkit.ReadFile(t, folder+"/values.yaml")
	var all map[string]any
	testkit.Must(t, yaml.Unmarshal([]byte(content), &all))
	if got := leaves(all); got > mostValues {
		t.Errorf("got %d values, want %d at most", got, mostValues)
	}
}

// leaves counts the values in a value: a list, and a map without a default, are one.
func leaves(value any) int {
	in, _ := value.(map[string]any)
	if len(in) == 0 {
		return 1
	}
	count := 0
	for _, one := range in {
		count += leaves(one)
	}
	return count
}

func TestReferenceOfTheValuesIsWhatTheChartSays(t *testing.T) {
	content := testkit.ReadFile(t, folder+"/values.yaml")
	raw := testkit.ReadFile(t, folder+"/values.schema.json")
	var top schema
	testkit.Must(t, json.Unmarshal([]byte(raw), &top))
	text, _, found := strings.Cut(testkit.ReadFile(t, readme), table)
	if !found {
		t.Fatalf("%s has no table of the values", readme)
	}
	doc := bytes.NewBufferString(text + table)
	listed := map[string]bool{}
	all := values(content)
	for i, one := range all {
		of, known := top.of(one.path, top.Defs)
		root, _, nested := strings.Cut(one.path, ".")
		listed[root] = true
		parent, _ := top.of(one.path[:max(strings.LastIndex(one.path, "."), 0)], top.Defs)
		switch {
		case !known && nested && parent.Properties == nil:
			continue // A field of an object of Kubernetes.
		case !known:
			t.Errorf("%s is not in the schema", one.path)
		case one.text == "" && of.Properties == nil && of.Ref == "":
			one.text = below
		case one.text == "" && one.comment == "":
			continue // Only what is in it says something.
		}
		if !nested && one.comment == "" && !strings.HasPrefix(all[min(i+1, len(all)-1)].path, root+".") {
			t.Errorf("%s has no comment", one.path)
		}
		if one.text != "" && one.text != below {
			one.text = "`" + one.text + "`"
		}
		comment := pageName.ReplaceAllString(strings.ReplaceAll(one.comment, "|", `\|`), "[$2](https://github.com/keyturn/keyturn/blob/main/docs/$1.md)")
		fmt.Fprintf(doc, "| `%s` | %s | %s | %s |\n", one.path, of.name(top.Defs), one.text, comment)
	}
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		if !listed[name] && !strings.HasPrefix(name, "kube") && !slices.Contains([]string{"namespace", "nameOverride"}, name) {
			t.Errorf("%s is in the schema and not in values.yaml", name)
		}
	}
	testkit.Golden(t, readme, doc.Bytes())
}
