package chart

import (
	"strings"
	"testing"
)

// A node with Windows need not have a taint, and cannot run the image.
func TestEveryPodNeedsANodeWithLinux(t *testing.T) {
	pods := 0
	for name, o := range withTests(t, "{openbaoAudit: {enabled: true}, "+aProjector+"}") {
		spec, _ := o.at("spec", "template", "spec").(map[string]any)
		if strings.HasPrefix(name, "Pod ") {
			spec, _ = o["spec"].(map[string]any)
		}
		if spec["containers"] == nil {
			continue
		}
		pods++
		if got := object(spec).at("nodeSelector", "kubernetes.io/os"); got != "linux" {
			t.Errorf("%s may be on a node with %v", name, got)
		}
	}
	if pods < 6 {
		t.Errorf("got %d kinds of pods, want those of four programs, of the job and of the test", pods)
	}
}
