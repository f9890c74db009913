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

	"github.com/keyturn/keyturn/tests/testkit"
)

// BenchmarkAPatchUnderThePolicy compares a dry-run patch that rolls a Deployment with the admission policy and without it: one more roll of what the
// actuator has rolled before, which is nearly all that it writes, a first roll, and a patch of others. The two are measured by turns, because
// whatever else runs on the machine makes either slower.
func BenchmarkAPatchUnderThePolicy(b *testing.B) {
	c := newConfined(b)
	rolled := target{deployment.resource, "rolled", deployment.template}
	c.apply(strings.ReplaceAll(confinedObject("apps/v1", "Deployment", rolled.name,
		"replicas: 0, "+confinedSelector+confinedTemplate("Always")), "NAMESPACE", c.namespace))
	c.rollOnce(rolled)
	body, err := yaml.YAMLToJSON([]byte("[" + strings.ReplaceAll(again, "TEMPLATE", deployment.template) + "]"))
	testkit.Must(b, err)
	patches := []struct {
		name   string
		client dynamic.Interface
		to     target
	}{{"roll", c.actuator, rolled}, {"first-roll", c.actuator, deployment}, {"others", c.admin, rolled}}
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
					for _, p := range patches {
						start := time.Now()
						_, err := p.client.Resource(p.to.resource).Namespace(c.namespace).Patch(b.Context(), p.to.name, types.JSONPatchType, body,
							metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "keyturn"})
						testkit.Must(b, err)
						took[p.name+" "+policy] = append(took[p.name+" "+policy], time.Since(start))
					}
				}
				remove()
			}
		}
	}
	middle := func(of string) time.Duration {
		slices.Sort(took[of])
		return took[of][len(took[of])/2]
	}
	for _, p := range patches {
		without, with := middle(p.name+" without"), middle(p.name+" with")
		b.ReportMetric(float64(without.Microseconds())/1000, p.name+"-ms-without")
		b.ReportMetric(float64(with.Microseconds())/1000, p.name+"-ms-with")
		b.ReportMetric(float64(with)/float64(without), p.name+"-ratio")
	}
}
