package workload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// TargetConfig is a kind of custom resource that is rolled like a workload. Paths are those of kube.FieldPath.
type TargetConfig struct {
	// APIVersion, Kind and Resource identify the kind in the API: monitoring.coreos.com/v1, Prometheus, prometheuses. Required.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	// Name is the name for kubectl and in outcomes. Default: the kind in lower case.
	Name string `json:"name"`
	// Template is the path of a pod template, whose references all count. Default: the kind has none.
	Template kube.FieldPath `json:"template"`
	// Reads are other fields with names of sources. References of workloads that the object controls always count.
	Reads []targetRead `json:"reads"`
	// Ignores are sources that do not count although the pods read them, as <kind>/<name>, where {name} is replaced by the name of the object.
	Ignores []string `json:"ignores"`
	// Replicas is the path of the number of pods. An object without pods needs no slot. Default: every object has pods.
	Replicas kube.FieldPath `json:"replicas"`
	// Trigger is the place that is written to replace the pods. Required.
	Trigger targetTriggerConfig `json:"trigger"`
	// Status says how to read the progress. Default: it is unknown, and a rollout counts as complete.
	Status targetStatus `json:"status"`
}

// targetRead is a field in which an object names sources.
type targetRead struct {
	// Kind is secret, configmap or secretproviderclass. Required.
	Kind string `json:"kind"`
	// Path is the path of the names, or of objects with names. Required.
	Path kube.FieldPath `json:"path"`
	// Name and Key are paths in the objects at Path: of the name, and of the data key. Default: the name is at Path itself, and all keys are read.
	Name kube.FieldPath `json:"name"`
	Key  kube.FieldPath `json:"key"`
}

// targetTriggerConfig is the place that is written to replace pods: annotations, or one field.
type targetTriggerConfig struct {
	// Annotations is the path of a map of annotations that the pods get.
	Annotations kube.FieldPath `json:"annotations"`
	// Field is the path of a string field in the spec, or of one of the object's annotations.
	Field kube.FieldPath `json:"field"`
	// Value is the kind of value for the field: revision, which differs for each roll, or time. If it is empty, the field is set to Text.
	Value string `json:"value"`
	Text  string `json:"text"`
}

// These are the values of targetTriggerConfig.Value.
const (
	valueRevision = "revision"
	valueTime     = "time"
)

// targetStatus describes how a controller reports its progress.
type targetStatus struct {
	// ObservedGeneration is the path of the generation that the rest of the status is about. Default: it is always about the newest one.
	ObservedGeneration kube.FieldPath `json:"observedGeneration"`
	// Observed must all hold before the rest counts. A comparison with a missing field holds, because no roll was requested yet.
	Observed []targetTest `json:"observed"`
	// Done must all hold for a complete rollout. If one of Failed holds, the controller has given up. If one of Waiting holds, it waits for people.
	Done    []targetTest `json:"done"`
	Failed  []targetTest `json:"failed"`
	Waiting []targetTest `json:"waiting"`
	// Owned says that the workloads that the object controls get the annotations of the trigger, too.
	Owned bool `json:"owned"`
}

// targetTest tests that a field equals a text or another field, or that it is missing.
type targetTest struct {
	Path       kube.FieldPath `json:"path"`
	Equals     string         `json:"equals"`
	EqualsPath kube.FieldPath `json:"equalsPath"`
	// Missing requires that the field does not exist.
	Missing bool `json:"missing"`
}

// nameOfObject is replaced by the name of an object in TargetConfig.Ignores.
const nameOfObject = "{name}"

// compile returns the target, and a line for each problem of its configuration, which begins with the field.
func (c TargetConfig) compile() (target, []string) {
	p, isNamed := targetProblems{}, c.Name != ""
	if !isNamed {
		c.Name = strings.ToLower(c.Kind)
	}
	if p.group(c); len(p.list) > 0 {
		return target{TargetConfig: c}, p.list // Further problems would not matter.
	}
	p.identity(c, isNamed)
	p.path("template", c.Template)
	p.path("replicas", c.Replicas)
	for i, read := range c.Reads {
		p.read(fmt.Sprintf("reads[%d].", i), read)
	}
	for i, item := range c.Ignores {
		if problem := (&rule{}).source(strings.ReplaceAll(item, nameOfObject, "a")); problem != "" || strings.Contains(item, "#") {
			p.add("ignores[%d]: %q, want <kind>/<name>, where <name> may have *, ? and %s", i, item, nameOfObject)
		}
	}
	t := target{TargetConfig: c, trigger: p.trigger(c.Trigger)}
	p.path("status.observedGeneration", c.Status.ObservedGeneration)
	p.tests("observed", c.Status.Observed)
	p.tests("done", c.Status.Done)
	p.tests("failed", c.Status.Failed)
	p.tests("waiting", c.Status.Waiting)
	if c.Status.Owned && !t.trigger.ofMap {
		p.add("status.owned: want it with trigger.annotations, which are looked for on what the object owns")
	}
	return t, p.list
}

// targetProblems collects the problems of a target.
type targetProblems struct{ list []string }

func (p *targetProblems) add(form string, values ...any) {
	p.list = append(p.list, fmt.Sprintf(form, values...))
}

// group checks whether kinds of an API group can be targets.
func (p *targetProblems) group(c TargetConfig) {
	group, _, _ := strings.Cut(c.APIVersion, "/")
	if known := knownGroups[group]; known != "" {
		p.add("apiVersion: %q is not of a custom resource that can be a target: %s", c.APIVersion, known)
	} else if strings.HasSuffix(group, ".k8s.io") {
		p.add("apiVersion: %q is not of a custom resource that can be a target", c.APIVersion)
	}
}

// knownGroups says, for some API groups, how Keyturn handles their custom resources without a target.
var knownGroups = map[string]string{
	"argoproj.io":         "a Rollout is rolled without one",
	"external-secrets.io": "an ExternalSecret is synced by --force-sync, also when a Secret or ConfigMap that its templateFrom names changes",
}

// identity checks the names of the kind.
func (p *targetProblems) identity(c TargetConfig, isNamed bool) {
	err := events.ValidateWorkloadKind(c.Name, c.APIVersion, c.Resource)
	field, problem, _ := strings.Cut(fmt.Sprint(err), ": ")
	switch {
	case c.Kind == "" || strings.ToUpper(c.Kind[:1]) != c.Kind[:1]:
		p.add("kind: %q, want the kind of a custom resource, such as Widget", c.Kind)
	case err == nil:
	case field != "kind":
		p.add("%s", err)
	case isNamed:
		p.add("name: %s", problem)
	default:
		p.add("name: is empty, and the kind in lower case cannot be used: %s", problem)
	}
}

// path checks a path, which may be empty.
func (p *targetProblems) path(field string, path kube.FieldPath) {
	if err := path.Err(); err != nil {
		p.add("%s: %q %s", field, path, err)
	}
}

// required checks a path that may not be empty.
func (p *targetProblems) required(field string, path kube.FieldPath) {
	if path.String() == "" {
		p.add("%s: is empty, want a path such as spec.secretName", field)
	}
	p.path(field, path)
}

func (p *targetProblems) read(field string, c targetRead) {
	p.required(field+"path", c.Path)
	p.path(field+"name", c.Name)
	p.path(field+"key", c.Key)
	if objectKind(c.Kind) == "" {
		p.add("%skind: %q, want secret, configmap or secretproviderclass", field, c.Kind)
	}
	if c.Key.String() != "" && c.Name.String() == "" {
		p.add("%sname: is empty, want the path of the name beside that of the key", field)
	}
}

// trigger reads the trigger. In metadata, it can only be a single annotation.
func (p *targetProblems) trigger(c targetTriggerConfig) targetTrigger {
	t := targetTrigger{ofMap: c.Annotations.String() != "", value: c.Value, text: c.Text}
	given, field := c.Field, "trigger.field"
	if t.ofMap {
		given, field = c.Annotations, "trigger.annotations"
	}
	if given.String() == "" || t.ofMap && c.Field.String() != "" {
		p.add("trigger: want either annotations or field")
		return t
	}
	if p.path(field, given); given.Err() != nil {
		return t
	}
	names, plain := given.Names()
	t.names = names
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

func (p *targetProblems) tests(name string, list []targetTest) {
	for i, t := range list {
		field := fmt.Sprintf("status.%s[%d].", name, i)
		p.required(field+"path", t.Path)
		p.path(field+"equalsPath", t.EqualsPath)
		given := slices.DeleteFunc([]bool{t.Equals != "", t.EqualsPath.String() != "", t.Missing}, func(given bool) bool { return !given })
		if len(given) != 1 {
			p.add("%sequals: want one of equals, equalsPath and missing", field)
		}
	}
}
