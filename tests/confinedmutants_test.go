package tests

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	// mutantsSeed makes the same mutants each time.
	mutantsSeed = 41
	// mutantsOfAPatch are made of each patch that Keyturn writes.
	mutantsOfAPatch = 24
	// fewestMutants is how many must succeed without the policy, and do something: of the others nothing is learned.
	fewestMutants = 100
)

// mayMutate are the places whose content the policy does not know, because Keyturn writes texts there: its records and marks, on the object or its
// pod template, the mark of a sync, and the time of a restart. All are bounded in length. The API server itself writes the one of a DaemonSet again.
var mayMutate = regexp.MustCompile(`^(TEMPLATE)?/metadata/annotations/(` +
	`keyturn\.dev~1(rolled|reverted|last|rolled-now|rolled-at|rolls|revision|cause|traceparent|synced-from)|` +
	`external-secrets\.io~1force-sync|deprecated\.daemonset\.template\.generation)$|^/spec/restartAt$`)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// place is one of an object: its JSON pointer and what is there.
type place struct {
	pointer string
	value   any
}

// mutant is a patch of Keyturn's with a mutation, which is its last operation, or in a path of its first.
type mutant struct {
	to                 target
	of                 string
	mutation           operation
	unmutated, patched string
}

// additions are fields that a mutation may add. Where there is no such field the API server leaves it out, and nothing is learned.
var additions = []place{
	{"mutant", "x"},
	{"f:mutant", map[string]any{}},
	{"hostPID", true},
	{"hostNetwork", true},
	{"workingDir", "/x"},
	{"command", []any{"x"}},
	{"imagePullPolicy", "Never"},
	{"paused", true},
	{"minReadySeconds", int64(9)},
	{"activeDeadlineSeconds", int64(9)},
	{"terminationGracePeriodSeconds", int64(9)},
	{"priorityClassName", "x"},
	{"serviceAccountName", "x"},
	{"refreshInterval", "9h"},
}

// unmutable is what an update cannot change, or the API server writes itself.
var unmutable = regexp.MustCompile(`^/(apiVersion|kind|status|metadata/(name|namespace|uid|resourceVersion|generation|creationTimestamp|selfLink)|` +
	`metadata/managedFields/\d+/time)$`)

// placesAt lists what is at a place and below it.
func placesAt(pointer string, value any) []place {
	if unmutable.MatchString(pointer) {
		return nil
	}
	all := []place{{pointer, value}}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			all = append(all, placesAt(pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), value[name])...)
		}
	case []any:
		for i, one := range value {
			all = append(all, placesAt(pointer+"/"+strconv.Itoa(i), one)...)
		}
	}
	return all
}

// regions are the places of an object in three groups, as most of all are in managedFields.
func regions(object map[string]any) [3][]place {
	var groups [3][]place
	for _, one := range placesAt("", object) {
		switch {
		case strings.HasPrefix(one.pointer, "/metadata/managedFields/"):
			groups[2] = append(groups[2], one)
		case strings.HasPrefix(one.pointer, "/spec/"):
			groups[1] = append(groups[1], one)
		case strings.HasPrefix(one.pointer, "/metadata/"):
			groups[0] = append(groups[0], one)
		}
	}
	return groups
}

// changed returns another value of the same type.
func changed(value any) any {
	switch value := value.(type) {
	case string:
		return value + "x"
	case bool:
		return !value
	case int64:
		return value + 1
	case float64:
		return value + 1
	case map[string]any:
		if len(value) == 0 {
			return map[string]any{"f:mutant": map[string]any{}}
		}
		return map[string]any{}
	default:
		return []any{}
	}
}

// mutationOf returns an operation that changes, adds or removes something at a random place.
func mutationOf(random *rand.Rand, groups [3][]place) operation {
	group := groups[random.IntN(len(groups))]
	one := group[random.IntN(len(group))]
	switch random.IntN(3) {
	case 0:
		return operation{Op: "remove", Path: one.pointer}
	case 1:
		switch value := one.value.(type) {
		case map[string]any:
			added := additions[random.IntN(len(additions))]
			return operation{Op: "add", Path: one.pointer + "/" + added.pointer, Value: added.value}
		case []any:
			if len(value) > 0 {
				return operation{Op: "add", Path: one.pointer + "/-", Value: value[0]}
			}
		}
	}
	return operation{Op: "replace", Path: one.pointer, Value: changed(one.value)}
}

// operationsIn reads the operations of a patch.
func operationsIn(t *testing.T, operations string) []operation {
	t.Helper()
	var all []operation
	testkit.Must(t, yaml.Unmarshal([]byte("["+operations+"]"), &all))
	return all
}

// textOf is the text of operations, as patches here have it.
func textOf(t *testing.T, operations []operation) string {
	t.Helper()
	content, err := json.Marshal(operations)
	testkit.Must(t, err)
	return strings.TrimSuffix(strings.TrimPrefix(string(content), "["), "]")
}

// mutants makes the mutants of each patch that Keyturn writes.
func (c *confined) mutants(t *testing.T) []mutant {
	t.Helper()
	random := rand.New(rand.NewPCG(mutantsSeed, mutantsSeed))
	var all []mutant
	allowed(func(to target, patch forged) {
		after, err := c.attempt(c.namespace, to, patch.operations, metav1.DryRunAll)
		if err != nil {
			t.Fatalf("a patch that %s of %s: %v", patch.name, to.resource.Resource, err)
		}
		groups := regions(after.Object)
		for i := range mutantsOfAPatch {
			operations := operationsIn(t, patch.operations)
			mutation := mutationOf(random, groups)
			if i == 0 { // Another name in the place of one that Keyturn writes.
				operations[0].Path += "x"
				mutation = operations[0]
			} else {
				operations = append(operations, mutation)
			}
			all = append(all, mutant{to, patch.name, mutation, patch.operations, textOf(t, operations)})
		}
	})
	return all
}

// effectOf is what a patch can do to an object, without what controllers write meanwhile, and without times.
func effectOf(object *unstructured.Unstructured) map[string]any {
	metadata, _, _ := unstructured.NestedMap(object.Object, "metadata")
	for _, name := range []string{"resourceVersion", "generation", "managedFields"} {
		delete(metadata, name)
	}
	owners := map[string]any{}
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.FieldsV1 != nil {
			owners[entry.Manager+" "+string(entry.Operation)+" "+entry.APIVersion] = entry.FieldsV1.GetRawString()
		}
	}
	return map[string]any{"metadata": metadata, "owners": owners, "spec": object.Object["spec"]}
}

// does reports whether a mutation changes what the patch does, and returns the error of the mutant.
func (c *confined) does(t *testing.T, m mutant) (does bool, err error) {
	t.Helper()
	after, err := c.attempt(c.namespace, m.to, m.patched, metav1.DryRunAll)
	if err != nil {
		return false, err
	}
	unmutated, err := c.attempt(c.namespace, m.to, m.unmutated, metav1.DryRunAll)
	if err != nil {
		t.Fatalf("a patch that %s of %s: %v", m.of, m.to.resource.Resource, err)
	}
	return !cmp.Equal(effectOf(after), effectOf(unmutated)), nil
}

// may reports whether the policy may let a mutation pass.
func (m mutant) may() bool {
	path := m.mutation.Path
	if m.to.template != "" && strings.HasPrefix(path, m.to.template+"/") {
		path = "TEMPLATE" + strings.TrimPrefix(path, m.to.template)
	}
	return mayMutate.MatchString(path)
}

// The forged patches of other tests are those that somebody thought of. These are what Keyturn writes with one mutation each.
func TestTheActuatorsTokenWritesNoMutantOfWhatKeyturnWrites(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	var forged []mutant
	for _, m := range c.mutants(t) {
		if does, err := c.does(t, m); err == nil && does && !m.may() {
			forged = append(forged, m)
		}
	}
	if len(forged) < fewestMutants {
		t.Errorf("without the policy %d mutants succeed and do something, want at least %d", len(forged), fewestMutants)
	}
	c.confine("")
	refused := 0
	for _, m := range forged {
		does, err := c.does(t, m)
		switch {
		case c.refused(err):
			refused++
		case err == nil && does:
			t.Errorf("a patch that %s of %s with the mutation %s (seed %d) passes, want that the policy refuses it",
				m.of, m.to.resource.Resource, textOf(t, []operation{m.mutation}), mutantsSeed)
		}
	}
	if refused < fewestMutants {
		t.Errorf("the policy refuses %d of %d mutants, want at least %d of them", refused, len(forged), fewestMutants)
	}
	t.Logf("%d mutants succeed without the policy, which refuses %d of them", len(forged), refused)
}
