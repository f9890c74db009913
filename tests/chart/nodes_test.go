package chart

import (
	"strings"
	"testing"
)

// A node with Windows need not have a taint, and cannot run the image.
func TestEveryPodNeedsANodeWithLinux(t *testing.T) {
	const more = "{openbaoAudit: {enabled: true}, projector: {enabled: true, projections: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, " +
		"paths: [spec.a], secrets: [{namespace: a, name: one, keys: [k]}]}]}}"
	for from, all := range map[string]map[string]object{
		"kustomize": kustomized(t, "base", "openbao-audit", "projector", "projections/example"), "the chart": withTests(t, more),
	} {
		pods := 0
		for name, o := range all {
			spec, _ := o.at("spec", "template", "spec").(map[string]any)
			if strings.HasPrefix(name, "Pod ") {
				spec, _ = o["spec"].(map[string]any)
			}
			if spec["containers"] == nil {
				continue
			}
			pods++
			if got := object(spec).at("nodeSelector", "kubernetes.io/os"); got != "linux" {
				t.Errorf("%s of %s may be on a node with %v", name, from, got)
			}
		}
		if pods < 5 {
			t.Errorf("%s has %d kinds of pods, want those of four programs and of the job", from, pods)
		}
	}
}
