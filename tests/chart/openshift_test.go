package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
)

// OpenShift refuses pods with a user or group that it has not assigned, and a policy without its port closes DNS.
func TestThePageLeavesUsersToOpenShiftAndOpensItsDNS(t *testing.T) {
	blocks := blocksOfPage(t, "### OpenShift")
	if len(blocks) != 2 {
		t.Fatalf("the section has %d blocks, want one for kustomize and one for the chart", len(blocks))
	}
	t.Run("with kustomize", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		var components []string
		for _, component := range []string{"components/openbao-audit", "components/projector", "projections/example", "components/high-availability"} {
			components = append(components, deployFrom(t, dir, component))
		}
		overlay := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", deployFrom(t, dir, "base"), strings.Join(components, ", "))
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay+blocks[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := testbed.Kustomize(t.Context(), os.Stderr, dir)
		if err != nil {
			t.Fatal(err)
		}
		runsOnOpenShift(t, string(out))
	})
	t.Run("with the chart", func(t *testing.T) {
		t.Parallel()
		out, err := helm(t, blocks[1]+"openbaoAudit: {enabled: true}\nactuator: {replicas: 3}\n", "template", "keyturn", folder)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		runsOnOpenShift(t, out)
	})
}

func runsOnOpenShift(t *testing.T, manifests string) {
	t.Helper()
	policies := 0
	for name, o := range objects(t, manifests) {
		for _, context := range []any{o.at("spec", "securityContext"), o.at("spec", "template", "spec", "securityContext")} {
			if text := fmt.Sprint(context); regexp.MustCompile("runAsUser|runAsGroup|fsGroup:").MatchString(text) {
				t.Errorf("the pods of %s have %s", name, text)
			}
		}
		egress := fmt.Sprint(o.at("spec", "egress"))
		if !strings.HasPrefix(name, "NetworkPolicy ") || !strings.Contains(egress, "map[port:53 protocol:UDP]") {
			continue
		}
		policies++
		if !strings.Contains(egress, "map[port:5353 protocol:UDP]") || !strings.Contains(egress, "map[port:5353]") {
			t.Errorf("%s has DNS on port 53 alone: %s", name, egress)
		}
	}
	if policies < 4 {
		t.Errorf("there are %d policies with DNS", policies)
	}
}
