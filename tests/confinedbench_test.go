package tests

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// BenchmarkAPatchUnderThePolicy compares a dry-run patch that rolls a Deployment with the admission policy and without it, of the account that
// it is for, and of others. The two are measured by turns, because whatever else runs on the machine makes either slower.
func BenchmarkAPatchUnderThePolicy(b *testing.B) {
	c := newConfined(b)
	body, err := yaml.YAMLToJSON([]byte("[" + recordOf + "," + strings.ReplaceAll(marksOf, "AT", deployment.template+"/metadata") + "]"))
	if err != nil {
		b.Fatal(err)
	}
	patch := func(client dynamic.Interface) time.Duration {
		start := time.Now()
		_, err := client.Resource(deployment.resource).Namespace(c.namespace).Patch(b.Context(), deployment.name, types.JSONPatchType, body,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "keyturn"})
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	took := map[string][]time.Duration{}
	const turns = 4
	for b.Loop() {
		for range turns {
			for _, policy := range []string{"without", "with"} {
				remove := func() {}
				if policy == "with" {
					remove = c.enforce("")
				}
				for range 100 {
					took["actuator "+policy] = append(took["actuator "+policy], patch(c.actuator))
					took["others "+policy] = append(took["others "+policy], patch(c.admin))
				}
				remove()
			}
		}
	}
	for _, who := range []string{"actuator", "others"} {
		without, with := median(took[who+" without"]), median(took[who+" with"])
		b.ReportMetric(float64(without.Microseconds())/1000, who+"-ms-without")
		b.ReportMetric(float64(with.Microseconds())/1000, who+"-ms-with")
		b.ReportMetric(float64(with)/float64(without), who+"-ratio")
	}
}

func median(list []time.Duration) time.Duration {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2].Round(100 * time.Microsecond)
}
