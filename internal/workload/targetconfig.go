package workload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/fieldpath"
)

// TargetConfig is a kind of custom resource that is rolled like a workload. Paths are those of package fieldpath.
type TargetConfig struct {
	// APIVersion, Kind and Resource identify the kind in the API: monitoring.coreos.com/v1, Prometheus, prometheuses. Required.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	// Name is the name for kubectl and in outcomes. Default: the kind in lower case.
	Name string `json:"name"`
	// Template is the path of a pod template, everything that its pods read counts. Default: the kind has none.
	Template string `json:"template"`
	// Reads are other fields that name what the pods read. What the pods of workloads that it controls read always counts.
	Reads []TargetReadConfig `json:"reads"`
	// Ignores are sources that do not count although the pods read them, as <kind>/<name>, where {name} is replaced by the name of the object.
	Ignores []string `json:"ignores"`
	// Replicas is the path of the number of pods. An object without pods is rolled without waiting for a slot. Default: every object has pods.
	Replicas string `json:"replicas"`
	// Trigger is what is written to have the pods replaced. Required.
	Trigger TargetTriggerConfig `json:"trigger"`
	// Status says how to read the progress. Default: it is unknown, and a rollout counts as complete.
	Status TargetStatusConfig `json:"status"`
}

// TargetReadConfig is where an object names sources.
type TargetReadConfig struct {
	// Kind is secret, configmap or secretproviderclass. Required.
	Kind string `json:"kind"`
	// Path is the path of the names, or of objects with names. Required.
	Path string `json:"path"`
	// Name and Key are paths within those objects: of the name, and of the data key. Default: the name is at Path itself, and all keys are read.
	Name string `json:"name"`
	Key  string `json:"key"`
}

// TargetTriggerConfig is what is written to have pods replaced: annotations, or one field.
type TargetTriggerConfig struct {
	// Annotations is the path of a map of annotations that the pods get.
	Annotations string `json:"annotations"`
	// Field is the path of a string field in the spec, or of one of the object's annotations.
	Field string `json:"field"`
	// Value is what the field is set to: revision, which differs from roll to roll, or time. If it is empty, the field is set to Text.
	Value string `json:"value"`
	Text  string `json:"text"`
}

// TargetStatusConfig says how a controller reports its progress.
type TargetStatusConfig struct {
	// ObservedGeneration is the path of the generation that the rest of the status is about. Default: it is always about the newest one.
	ObservedGeneration string `json:"observedGeneration"`
	// Observed must all hold before the rest counts. A comparison with a missing field holds, because nobody has asked for anything yet.
	Observed []TargetTestConfig `json:"observed"`
	// Done must all hold for the rollout to be complete. If one of Failed holds, the controller has given up, and if one of Waiting, it waits for
	// people.
	Done    []TargetTestConfig `json:"done"`
	Failed  []TargetTestConfig `json:"failed"`
	Waiting []TargetTestConfig `json:"waiting"`
	// Owned says that the workloads that the object controls get the annotations of the trigger, too.
	Owned bool `json:"owned"`
}

// TargetTestConfig tests that a field equals a text or another field, or that it is missing.
type TargetTestConfig struct {
	Path       string `json:"path"`
	Equals     string `json:"equals"`
	EqualsPath string `json:"equalsPath"`
	// Missing requires that there is no such field.
	Missing bool `json:"missing"`
}

// The values of TargetTriggerConfig.Value.
const (
	valueRevision = "revision"
	valueTime     = "time"
)

// nameOfObject is replaced by the name of an object in TargetConfig.Ignores.
const nameOfObject = "{name}"

// compile returns the target, and a line for each problem of its configuration, beginning with the field.
func (c TargetConfig) compile() (target, []string) {
	t := target{config: c, name: c.Name}
	if t.name == "" {
		t.name = strings.ToLower(c.Kind)
	}
	p := targetProblems{}
	p.identity(c, t.name)
	t.template, t.replicas = p.path("template", c.Template), p.path("replicas", c.Replicas)
	for i, read := range c.Reads {
		t.reads = append(t.reads, p.read(fmt.Sprintf("reads[%d].", i), read))
	}
	for i, item := range c.Ignores {
		if problem := (&rule{}).source(strings.ReplaceAll(item, nameOfObject, "a")); problem != "" || strings.Contains(item, "#") {
			p.add("ignores[%d]: %q, want <kind>/<name>, where <name> may have *, ? and %s", i, item, nameOfObject)
		}
	}
	t.trigger = p.trigger(c.Trigger)
	t.status = p.status(c.Status, c.Trigger)
	return t, p.list
}

// targetProblems collects what is wrong with a target.
type targetProblems struct{ list []string }

func (p *targetProblems) add(form string, values ...any) {
	p.list = append(p.list, fmt.Sprintf(form, values...))
}

// identity checks how the kind is named.
func (p *targetProblems) identity(c TargetConfig, name string) {
	group, _, _ := strings.Cut(c.APIVersion, "/")
	err := events.ValidateWorkloadKind(name, c.APIVersion, c.Resource)
	switch {
	case c.Kind == "" || strings.ToUpper(c.Kind[:1]) != c.Kind[:1]:
		p.add("kind: %q, want the kind of a custom resource, such as Widget", c.Kind)
	case err != nil && strings.HasPrefix(err.Error(), "kind: "):
		p.add("name: %s", strings.TrimPrefix(err.Error(), "kind: "))
	case err != nil:
		p.add("%s", err)
	case strings.HasSuffix(group, ".k8s.io") || slices.Contains(knownGroups, group):
		p.add("apiVersion: %q is not of a custom resource that can be a target", c.APIVersion)
	}
}

// knownGroups are API groups whose custom resources are known without configuration.
var knownGroups = []string{"argoproj.io", "external-secrets.io"}

// path reads a path that may be empty.
func (p *targetProblems) path(field, text string) fieldpath.Path {
	if text == "" {
		return fieldpath.Path{}
	}
	path, err := fieldpath.Parse(text)
	if err != nil {
		p.add("%s: %q %s", field, text, err)
	}
	return path
}

// required reads a path that may not be empty.
func (p *targetProblems) required(field, text string) fieldpath.Path {
	if text == "" {
		p.add("%s: is empty, want a path such as spec.secretName", field)
	}
	return p.path(field, text)
}

func (p *targetProblems) read(field string, c TargetReadConfig) targetRead {
	r := targetRead{kind: rollOnKind(c.Kind), path: p.required(field+"path", c.Path)}
	r.name, r.key = p.path(field+"name", c.Name), p.path(field+"key", c.Key)
	if r.kind == "" || r.kind == events.KindOpenBao {
		p.add("%skind: %q, want secret, configmap or secretproviderclass", field, c.Kind)
	}
	if c.Key != "" && c.Name == "" {
		p.add("%sname: is empty, want the path of the name beside that of the key", field)
	}
	return r
}

// trigger reads the trigger. In metadata, it can only be a single annotation.
func (p *targetProblems) trigger(c TargetTriggerConfig) targetTrigger {
	given, field := c.Annotations, "trigger.annotations"
	if given == "" {
		given, field = c.Field, "trigger.field"
	}
	if given == "" || c.Annotations != "" && c.Field != "" {
		p.add("trigger: want either annotations or field")
		return targetTrigger{}
	}
	names, plain := p.path(field, given).Names()
	if len(names) == 0 && plain {
		return targetTrigger{} // The invalid path has been reported.
	}
	t := targetTrigger{names: names, ofMap: c.Annotations != "", value: c.Value, text: c.Text}
	isAnnotation := plain && len(names) == 3 && names[0] == "metadata" && names[1] == "annotations" && !t.ofMap
	switch inSpec := plain && len(names) > 1 && names[0] == "spec"; {
	case !inSpec && !isAnnotation && t.ofMap:
		p.add("%s: %q, want a field below spec, not through a list", field, given)
	case !inSpec && !isAnnotation:
		p.add("%s: %q, want a field below spec, not through a list, or metadata.annotations['<name>']", field, given)
	case isAnnotation && strings.HasPrefix(names[2], "keyturn.dev/"):
		p.add("%s: %q is an annotation of Keyturn, want another one", field, given)
	case t.ofMap && (c.Value != "" || c.Text != ""):
		p.add("trigger.value: is for field, want it without annotations")
	case !t.ofMap && c.Value != valueRevision && c.Value != valueTime && (c.Value != "" || c.Text == ""):
		p.add("trigger.value: %q, want %s or %s, or a fixed text as trigger.text", c.Value, valueRevision, valueTime)
	case c.Value != "" && c.Text != "":
		p.add("trigger.text: want it without trigger.value")
	}
	return t
}

func (p *targetProblems) status(c TargetStatusConfig, trigger TargetTriggerConfig) targetStatus {
	s := targetStatus{generation: p.path("status.observedGeneration", c.ObservedGeneration), owned: c.Owned}
	s.observed, s.done = p.tests("observed", c.Observed), p.tests("done", c.Done)
	s.failed, s.waiting = p.tests("failed", c.Failed), p.tests("waiting", c.Waiting)
	if c.Owned && trigger.Annotations == "" {
		p.add("status.owned: want it with trigger.annotations, which are looked for on what the object owns")
	}
	return s
}

func (p *targetProblems) tests(name string, list []TargetTestConfig) []targetTest {
	var tests []targetTest
	for i, c := range list {
		field := fmt.Sprintf("status.%s[%d].", name, i)
		t := targetTest{
			path: p.required(field+"path", c.Path), equals: c.Equals, other: p.path(field+"equalsPath", c.EqualsPath), missing: c.Missing,
		}
		given := slices.DeleteFunc([]bool{c.Equals != "", c.EqualsPath != "", c.Missing}, func(given bool) bool { return !given })
		if len(given) != 1 {
			p.add("%sequals: want one of equals, equalsPath and missing", field)
		}
		tests = append(tests, t)
	}
	return tests
}
