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
	tests := []struct {
		name   string
		change func(*actuate.Options)
		want   string // empty if the options are valid
	}{
		{"the defaults, with a cluster, are valid", func(*actuate.Options) {}, ""},
		{
			"other clusters are not this one", func(o *actuate.Options) { o.StoresFrom = []string{o.Cluster} },
			`--stores-from: "demo" is this cluster, want others`,
		},
		{
			"a bake is no longer than a day", func(o *actuate.Options) { o.Bake = workload.MaxBake + 1 },
			"--bake: 24h0m0.000000001s, want 0 (as soon as the pods are ready) to 24h",
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
			"what is ignored is a kind", func(o *actuate.Options) { o.IgnoreWorkloadKinds = []string{"pods"} },
			`--ignore-workload-kinds: "pods", want any of deployment, statefulset, daemonset, cronjob, rollout, job, or their plurals`,
		},
		{
			"variables are for those who come from Reloader", func(o *actuate.Options) { o.ReloaderStrategy = "env-vars" },
			`--reloader-strategy: "env-vars", want it with --reloader only`,
		},
		{
			"all that is wrong is reported, one line each",
			func(o *actuate.Options) {
				*o = actuate.Options{Cluster: "demo", ReloaderStrategy: "all", Settle: -1, SettleMax: -2, MaxRollouts: -3}
			},
			"--settle: -1ns, want 0 or more\n" +
				"--settle-max: -2ns, want --settle (-1ns) or more\n" +
				"--max-rollouts: -3, want 0 (no limit) or more\n" +
				`--roll-on-create: "", want one of ["auto" "always" "never"]` + "\n" +
				"--rollout-timeout: 0s, want more than 0\n" +
				"--patch-workers: 0, want 1 or more\n" +
				"--max-syncs: 0, want 1 or more\n" +
				`--reloader-strategy: "all", want annotations or env-vars`,
		},
	}
	for _, test := range tests {
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
		"--settle=2s", "--settle-max=3s", "--max-rollouts=4", "--max-rollouts-per-namespace=3", "--store-access=stores.yaml",
		"--targets-config=targets", "--rollout-timeout=5s", "--roll-all", "--reloader", "--reloader-strategy=env-vars", "--dry-run",
		"--patch-workers=6", "--leader-elect=false", "--lease-namespace=here", "--force-sync", "--max-syncs=7",
		"--reloader-annotations=auto-annotation=a/b", "--roll-on-create=never", "--roll-on-delete", "--ignore-workload-kinds=cronjobs,jobs",
		"--ignore-namespaces=e,f", "--window=always", "--min-interval=8m", "--max-rolls-per-hour=9", "--reload-in-place", "--reload-delay=9m",
		"--canary", "--bake=7m",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := actuate.Options{
		Settle: 2 * time.Second, SettleMax: 3 * time.Second, MaxRollouts: 4, MaxRolloutsPerNamespace: 3, StoreAccess: "stores.yaml",
		TargetsConfig: "targets", RolloutTimeout: 5 * time.Second, RollAll: true, Reloader: true, ReloaderStrategy: "env-vars",
		ReloaderAnnotations: map[string]string{"auto-annotation": "a/b"}, DryRun: true,
		PatchWorkers: 6, LeaseNamespace: "here", LeaseName: "keyturn-actuator", ForceSync: true, MaxSyncs: 7,
		RevertDelays: actuate.DefaultOptions().RevertDelays,
		RollOnCreate: plan.CreateNever, RollOnDelete: true, IgnoreWorkloadKinds: []string{"cronjobs", "jobs"}, IgnoreNamespaces: []string{"e", "f"},
		Window: "always", MinInterval: 8 * time.Minute, MaxRollsPerHour: 9, Canary: true, Bake: 7 * time.Minute, InPlace: true, ReloadDelay: 9 * time.Minute,
	}
	if diff := flagged(options, want); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
