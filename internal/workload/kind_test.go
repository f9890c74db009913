package workload

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestKindsAreChosenByTheirSingularOrPlural(t *testing.T) {
	tests := []struct {
		name      string
		chosen    []string
		want, err string
	}{
		{name: "a singular and a plural, in the order of the table", chosen: []string{"cronjobs", "deployment"}, want: "deployment cronjob"},
		{name: "one twice", chosen: []string{"deployments", "deployment"}, want: "deployment"},
		{name: "what is no kind", chosen: []string{"pods"}, err: `"pods", want any of deployment, statefulset, daemonset, cronjob, or their plurals`},
		{name: "none", err: "is empty, want any of deployment, statefulset, daemonset, cronjob"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kept, err := BuiltIn().Only(test.chosen)
			testkit.WantError(t, err, test.err)
			if got := strings.Join(kept.Names(), " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if got, want := strings.Join(BuiltIn().Names(), " "), "deployment statefulset daemonset cronjob"; got != want {
		t.Errorf("the table itself is now %s, want %s", got, want)
	}
}
