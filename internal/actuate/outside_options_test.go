//go:build !race

package actuate_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// validOptions returns the options of an actuator that talks to nobody.
func validOptions() actuate.Options {
	options := actuate.DefaultOptions()
	options.Cluster, options.Client, options.Logger = "demo", fake.NewClientset(), slog.New(slog.DiscardHandler)
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), metricnoop.NewMeterProvider().Meter("")
	return options
}

// flagged compares the fields of Options that are flags or are checked.
func flagged(options, want actuate.Options) string {
	return cmp.Diff(want, options, cmpopts.IgnoreFields(actuate.Options{}, "Client", "Logger", "Tracer", "Meter", "Now", "Progress", "Unfit"))
}

func TestOptionsValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*actuate.Options)
		want   string // empty if the options are valid
	}{
		{"the defaults, with a cluster, are valid", func(*actuate.Options) {}, ""},
		{
			"other clusters are not this one", func(o *actuate.Options) { o.StoresFrom = []string{o.Cluster} },
			`--stores-from: "demo" is this cluster, want others`,
		},
		{"other clusters may have a domain", func(o *actuate.Options) { o.StoresFrom = []string{"hub@hub", "edge"} }, ""},
		{"a domain has a name", func(o *actuate.Options) { o.StoresFrom = []string{"hub@"} }, `--stores-from: "hub@", want a JetStream domain after the @`},
		{
			"a bake is no longer than a day", func(o *actuate.Options) { o.Canary = workload.MaxBake + 1 },
			"--canary: 24h0m0.000000001s, want 0 (off) to 24h",
		},
		{
			"an interval is no longer than a week", func(o *actuate.Options) { o.MinInterval = workload.MaxInterval + 1 },
			"--min-interval: 168h0m0.000000001s, want 0 (none) to 168h",
		},
		{
			"a window opens on some day", func(o *actuate.Options) { o.Window = "0 0 30 2 * for 1h" },
			`--window: "0 0 30 2 * for 1h": it never opens: there is no such day`,
		},
		{
			"what is rolled is a kind", func(o *actuate.Options) { o.WorkloadKinds = []string{"pods"} },
			`--workload-kinds: "pods", want any of deployment, statefulset, daemonset, cronjob, rollout, or their plurals`,
		},
		{
			"Jobs are started or recreated", func(o *actuate.Options) { o.Jobs = []string{actuate.JobsStart, "restart"} },
			`--jobs: "restart", want start, recreate or both`,
		},
		{
			"variables are for those who come from Reloader", func(o *actuate.Options) { o.Reloader.Strategy = "env-vars" },
			`--reloader: strategy: "env-vars", want it with on only`,
		},
		{
			"all that is wrong is reported, one line each",
			func(o *actuate.Options) {
				*o = actuate.Options{Cluster: "demo", Reloader: reloader.Settings{Strategy: "all"}, Settle: -1, MaxRollouts: -3}
			},
			"--settle: -1ns, want 0 or more\n" +
				"--max-rollouts: -3, want 0 (no limit) or more\n" +
				`--roll-on-create: "", want one of ["auto" "always" "never"]` + "\n" +
				"--workload-kinds: is empty, want any of deployment, statefulset, daemonset, cronjob, rollout\n" +
				"--rollout-timeout: 0s, want more than 0\n" +
				`--reloader: strategy: "all", want annotations or env-vars`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := validOptions()
			test.change(&options)
			testkit.WantError(t, options.Validate(), test.want)
			if _, err := actuate.New(options); (err == nil) != (test.want == "") {
				t.Errorf("making an actuator: %v", err)
			}
		})
	}
}

func TestOptionsFlagsSetTheirFields(t *testing.T) {
	options := actuate.DefaultOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if diff := flagged(options, actuate.DefaultOptions()); diff != "" {
		t.Errorf("adding the flags changed the defaults (-want +got):\n%s", diff)
	}
	err := flags.Parse([]string{
		"--settle=2s", "--max-rollouts=4", "--store-access=stores.yaml",
		"--targets-config=targets", "--rollout-timeout=5s", "--roll-all", "--dry-run",
		"--leader-elect=false", "--force-sync",
		"--reloader=on,strategy=env-vars,metrics,auto-annotation=a/b", "--roll-on-create=never", "--roll-on-delete", "--workload-kinds=deployments,rollout",
		"--ignore-namespaces=e,f", "--window=always", "--min-interval=8m", "--max-rolls-per-hour=9", "--reload-in-place=9m",
		"--canary=7m", "--jobs=start,recreate",
	})
	testkit.Must(t, err)
	want := actuate.Options{
		Settle: 2 * time.Second, MaxRollouts: 4, StoreAccess: "stores.yaml",
		TargetsConfig: "targets", RolloutTimeout: 5 * time.Second, RollAll: true, DryRun: true,
		Reloader:     reloader.Settings{On: true, Strategy: "env-vars", Metrics: true, Annotations: map[string]string{"auto-annotation": "a/b"}},
		PatchWorkers: 32, LeaseNamespace: "keyturn-system", LeaseName: "keyturn-actuator", ForceSync: true,
		RevertDelays: actuate.DefaultOptions().RevertDelays,
		RollOnCreate: plan.CreateNever, RollOnDelete: true, WorkloadKinds: []string{"deployments", "rollout"}, IgnoreNamespaces: []string{"e", "f"},
		Window: "always", MinInterval: 8 * time.Minute, MaxRollsPerHour: 9, Canary: 7 * time.Minute, ReloadInPlace: 9 * time.Minute,
		Jobs: []string{"start", "recreate"},
	}
	if diff := flagged(options, want); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
