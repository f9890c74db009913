package reloader

import (
	"strings"
	"testing"
)

func TestWhatCannotBeDoneIsRefusedByName(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  Environment
		args []string
		want string
	}{
		{"a replica without a name", environment("POD_NAMESPACE", "shop"), []string{"--enable-ha"}, `POD_NAME: "", want the one of this pod with --enable-ha`},
		{"a replica of no namespace", environment("POD_NAME", "a"), []string{"--enable-ha"}, `POD_NAMESPACE: "", want the one of this pod with --enable-ha`},
		{
			"replicas of what is no Deployment", environment("POD_NAME", "a", "POD_NAMESPACE", "b", "RELOADER_DEPLOYMENT_NAME", "a b"),
			[]string{"--enable-ha"},
			`RELOADER_DEPLOYMENT_NAME: "a b", want the name of this pod's Deployment with --enable-ha`,
		},
		{
			"replicas that call a webhook", environment("POD_NAME", "a", "POD_NAMESPACE", "shop"),
			[]string{"--enable-ha", "--webhook-url=https://example.com"},
			`--enable-ha: "true", want false with --webhook-url, which every replica would call`,
		},
		{"a webhook", Environment{}, []string{"--webhook-url=example"}, "--webhook-url: "},
		{"a kind of workload", Environment{}, []string{"--ignored-workload-types=pods"}, `--ignored-workload-types: "pods", want jobs, cronjobs or both`},
		{"a kind of source", Environment{}, []string{"--resources-to-ignore=pods"}, `--resources-to-ignore: "pods", want configmaps or secrets`},
		{
			"both kinds of source",
			Environment{},
			[]string{"--resources-to-ignore=configmaps,secrets"},
			`--resources-to-ignore: "configmaps,secrets", want configmaps or secrets, not both`,
		},
		{"a strategy", Environment{}, []string{"--reload-strategy=default"}, `--reload-strategy: "default", want env-vars or annotations`},
		{"an address", Environment{}, []string{"--enable-pprof", "--pprof-addr=nowhere"}, `--pprof-addr: "nowhere", want host:port or :port`},
		{"a namespace", Environment{}, []string{"--namespaces=Shop"}, `--namespaces: "Shop", want the name of a namespace`},
		{"the namespace of the environment", Environment{Namespace: "-"}, nil, `KUBERNETES_NAMESPACE: "-", want the name of a namespace`},
		{"a selector of namespaces", Environment{}, []string{"--namespace-selector=a:b:c"}, `--namespace-selector: "a:b:c", want a label selector: `},
		{"a selector of sources", Environment{}, []string{"--resource-label-selector=="}, `--resource-label-selector: "=", want a label selector: `},
		{"a cluster", Environment{}, []string{"--cluster=a.b"}, "--cluster: "},
		{"the key of an annotation", Environment{}, []string{"--auto-annotation=a b"}, `--auto-annotation: "a b", want the key of an annotation`},
		{
			"one key for two annotations",
			Environment{},
			[]string{"--auto-annotation=a/b", "--auto-search-annotation=a/b"},
			`--auto-annotation and auto-search-annotation: both are "a/b"`,
		},
		{"a limit of rolls", Environment{}, []string{"--max-rolls-per-hour=-1"}, `--max-rolls-per-hour: "-1", want 0 or more`},
		{"a debounce", Environment{}, []string{"--settle=-1s"}, `--settle: "-1s", want 0 or more`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := translate(t, tt.env, tt.args...)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line that begins with %s", err, tt.want)
			}
		})
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, err := translate(t, environment("KUBERNETES_NAMESPACE", "-"), "--enable-ha", "--reload-strategy=x", "--namespaces=A,B", "--auto-annotation=x y")
	if err == nil || len(strings.Split(err.Error(), "\n")) != 6 {
		t.Errorf("got %v, want six lines", err)
	}
}
