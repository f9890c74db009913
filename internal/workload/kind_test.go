package workload

import (
	"strings"
	"testing"
)

func TestKindsAreIgnoredByTheirSingularOrPlural(t *testing.T) {
	tests := []struct {
		name      string
		ignored   []string
		want, err string
	}{
		{name: "a singular", ignored: []string{"cronjob"}, want: "deployment statefulset daemonset"},
		{name: "jobs, which are never rolled", ignored: []string{"jobs"}, want: "deployment statefulset daemonset cronjob"},
		{name: "what is no kind", ignored: []string{"pods"}, err: `"pods", want any of deployment, statefulset, daemonset, cronjob, job, or their plurals`},
		{name: "all", ignored: BuiltIn().Names(), err: "all kinds of workloads, want one left"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kept, err := BuiltIn().Without(test.ignored)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			if got := strings.Join(kept.Names(), " "); err != nil || got != test.want {
				t.Errorf("got %s (%v), want %s", got, err, test.want)
			}
		})
	}
	if got, want := strings.Join(BuiltIn().Names(), " "), "deployment statefulset daemonset cronjob"; got != want {
		t.Errorf("the table itself is now %s, want %s", got, want)
	}
}
