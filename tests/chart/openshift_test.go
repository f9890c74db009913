package chart

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// OpenShift refuses pods with a user or group that it has not assigned, and a policy without its port closes DNS.
func TestThePageLeavesUsersToOpenShiftAndOpensItsDNS(t *testing.T) {
	blocks := blocksOfPage(t, "network-and-keys.md", "## OpenShift")
	if len(blocks) != 2 {
		t.Fatalf("the section has %d blocks, want one for kustomize and one for the chart", len(blocks))
	}
	t.Run("with kustomize", func(t *testing.T) {
		t.Parallel()
		runsOnOpenShift(t, built(t, overlay(t, blocks[0], "base", "openbao-audit", "projector", "projections/example", "high-availability")))
	})
	t.Run("with the chart", func(t *testing.T) {
		t.Parallel()
		runsOnOpenShift(t, releasedIn(t, systemNamespace, blocks[1]+"openbaoAudit: {enabled: true}\nactuator: {replicas: 3}\n"))
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
