package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestAVersionIsNamedAsItsEventIs(t *testing.T) {
	w := written{path: "shop/db", version: 2, at: time.Unix(1, 5), value: "hidden"}
	got := []string{w.source().String(), w.event(), w.String()}
	want := []string{"openbao/main/root/secret/shop/db", "main/root/secret/shop/db/2/1000000005", "version 2 of secret/shop/db"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestChainManifestsAreComplete(t *testing.T) {
	objects := chainManifests("http://127.0.0.1:8200", "a-token")
	for _, word := range regexp.MustCompile(`\b[A-Z]{3,}\b`).FindAllString(objects, -1) {
		if word != "ECDSA" {
			t.Errorf("%s was not replaced", word)
		}
	}
	var kinds []string
	for document := range strings.SplitSeq(objects, "---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.GetNamespace() != namespace {
			t.Errorf("namespace of %s %s: got %q, want %q", object.GetKind(), object.GetName(), object.GetNamespace(), namespace)
		}
		kinds = append(kinds, object.GetKind()+" "+object.GetName())
	}
	want := []string{
		"Secret store-token", "SecretStore main", "Issuer self", "Certificate gateway",
		"ExternalSecret db", "ExternalSecret license", "ExternalSecret mail",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// TestTheScenarioRollsEachReaderOfASecretThatChanges checks the expectations of the scenario against what its Deployments read.
func TestTheScenarioRollsEachReaderOfASecretThatChanges(t *testing.T) {
	readers := map[string][]string{}
	for _, deployment := range newReaders() {
		for _, from := range deployment.Spec.Template.Spec.Containers[0].EnvFrom {
			readers["secret/"+from.SecretRef.Name] = append(readers["secret/"+from.SecretRef.Name], "deployment/"+deployment.Name)
		}
	}
	for _, st := range chainScenario() {
		var want []string
		for _, source := range st.events {
			want = append(want, readers[source]...)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, st.rolls); diff != "" {
			t.Errorf("%s: rolls (-want +got):\n%s", st.title, diff)
		}
		if !slices.IsSorted(st.events) {
			t.Errorf("%s: the events are not in order, as they are compared: %v", st.title, st.events)
		}
	}
}
