package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// ProjectorConsumers returns the variable NATS_PROJECTOR_CONSUMERS of the actuator's pod in deploy/programs, as the kubelet fills it in.
func ProjectorConsumers(t testing.TB, deploy, cluster string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(deploy, "programs", "actuator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.StatefulSet
	if err := yaml.Unmarshal(content, &set); err != nil {
		t.Fatal(err)
	}
	for _, variable := range set.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "NATS_PROJECTOR_CONSUMERS" {
			return strings.ReplaceAll(variable.Value, "$(KEYTURN_CLUSTER)", cluster)
		}
	}
	t.Fatal("the actuator has no NATS_PROJECTOR_CONSUMERS")
	return ""
}

// ProjectorVariable returns a variable of the actuator's pod in deploy/components/projector, as the kubelet fills it in.
func ProjectorVariable(t testing.TB, deploy, name, cluster string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(deploy, "components", "projector", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var component struct {
		Patches []struct{ Patch string }
	}
	if err := yaml.Unmarshal(content, &component); err != nil {
		t.Fatal(err)
	}
	for _, one := range component.Patches {
		var operations []struct{ Value any }
		if err := yaml.Unmarshal([]byte(one.Patch), &operations); err != nil {
			t.Fatal(err)
		}
		for _, operation := range operations {
			if variable, ok := operation.Value.(map[string]any); ok && variable["name"] == name {
				return strings.ReplaceAll(fmt.Sprint(variable["value"]), "$(KEYTURN_CLUSTER)", cluster)
			}
		}
	}
	t.Fatalf("the component projector has no %s", name)
	return ""
}
