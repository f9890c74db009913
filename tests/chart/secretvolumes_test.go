package chart

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestASecretBringsNoFileOfConfiguration checks folders in which a Secret is beside the configuration of NATS, whose files include each
// other by name. The last source of a volume has the last word, so a whole Secret could replace nats.conf.
func TestASecretBringsNoFileOfConfiguration(t *testing.T) {
	for component, want := range map[string][]string{
		"leaf": {"ca.crt", "leaf-key.conf"}, "high-availability": {"ca.crt", "tls.crt", "tls.key"},
	} {
		var files []string
		for _, volume := range podOfTheActuator(t, kustomized(t, "base", component)).Volumes {
			if volume.Projected == nil {
				continue
			}
			for _, source := range volume.Projected.Sources {
				if source.Secret == nil {
					continue
				}
				if len(source.Secret.Items) == 0 {
					files = append(files, "all of "+source.Secret.Name)
				}
				for _, item := range source.Secret.Items {
					files = append(files, item.Path)
				}
			}
		}
		slices.Sort(files)
		if diff := cmp.Diff(want, files); diff != "" {
			t.Errorf("with %s, files from Secrets (-want +got):\n%s", component, diff)
		}
	}
}
