package reloader

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/program"
)

// translate parses arguments like the command.
func translate(t *testing.T, env Environment, args ...string) (*program.Reloader, error) {
	t.Helper()
	values := NewFlags()
	flags := pflag.NewFlagSet("reloader", pflag.ContinueOnError)
	values.AddFlags(flags)
	err := flags.Parse(args)
	if values.Arguments = flags.Args(); err != nil {
		t.Fatal(err)
	}
	return Translate(values, env, "1.2.3")
}

// environment returns the environment of variables, each followed by its value.
func environment(variables ...string) Environment {
	return NewEnvironment(func(name string) string {
		for i := 0; i < len(variables); i += 2 {
			if variables[i] == name {
				return variables[i+1]
			}
		}
		return ""
	})
}

// settings has the options that flags and environment change. All others are the same as in the programs themselves.
type settings struct {
	Watched, Rolled, Kinds      []string
	Unwatched, Unrolled         []string
	Selector, NamespaceSelector string
	RollAll, Rollouts, Delete   bool
	Starts, Recreates           bool
	Create                      plan.Creation
	Replica                     bool
	Lease                       string
	Ignored                     []string
	Level, Format               string
	Pprof, Metrics, Cluster     string
	Webhook, Strategy           string
	State, Key, Notify, Kube    string
	Notes                       []string
	Settle, SettleMax           time.Duration
	MaxRollsPerHour             int
}

func settingsOf(r *program.Reloader) settings {
	s := settings{
		Watched: r.Watcher.Sources.Namespaces, Rolled: r.Actuator.Actuate.Namespaces, Kinds: r.Watcher.Sources.Kinds,
		Unwatched: r.Watcher.Sources.IgnoreNamespaces, Unrolled: r.Actuator.Actuate.IgnoreNamespaces,
		Selector: r.Watcher.Sources.Selector, NamespaceSelector: r.Watcher.Sources.NamespaceSelector,
		RollAll: r.Actuator.Actuate.RollAll, Rollouts: r.Actuator.Actuate.ArgoRollouts,
		Delete: r.Actuator.Actuate.RollOnDelete, Create: r.Actuator.Actuate.RollOnCreate, Ignored: r.Actuator.Actuate.IgnoreWorkloadKinds,
		Starts: r.Actuator.Actuate.StartCronJobs, Recreates: r.Actuator.Actuate.RecreateJobs,
		Level: r.Process.Log.Level, Format: r.Process.Log.Format,
		Pprof: r.PprofAddr, Metrics: r.Process.MetricsAddr, Cluster: r.Process.Cluster, Webhook: r.Actuator.Call.URL,
		Strategy: r.Actuator.Actuate.ReloaderStrategy,
		State:    r.StateDir, Key: r.Watcher.Sources.KeyFile, Notify: r.Actuator.Notify.ConfigFile, Kube: r.Watcher.Process.Kube.Kubeconfig,
		Settle: r.Actuator.Actuate.Settle, SettleMax: r.Actuator.Actuate.SettleMax,
		MaxRollsPerHour: r.Actuator.Actuate.MaxRollsPerHour,
	}
	if s.Replica = r.Actuator.Actuate.LeaderElect; s.Replica {
		s.Lease = r.Actuator.Actuate.LeaseNamespace + "/" + r.Actuator.Actuate.LeaseName
	}
	for _, note := range r.Notes {
		s.Notes = append(s.Notes, note.Setting)
	}
	return s
}

func TestEverySettingOfReloaderIsTranslated(t *testing.T) {
	scoped := func(namespaces ...string) func(*settings) {
		return func(s *settings) { s.Watched, s.Rolled = namespaces, namespaces }
	}
	ignoring := func(namespaces ...string) func(*settings) {
		return func(s *settings) { s.Unwatched, s.Unrolled = namespaces, namespaces }
	}
	noted := func(flags ...string) func(*settings) { return func(s *settings) { s.Notes = flags } }
	same := func(*settings) {}
	for _, tt := range []struct {
		name string
		env  Environment
		args []string
		want func(*settings)
	}{
		{"--auto-reload-all", Environment{}, []string{"--auto-reload-all"}, func(s *settings) { s.RollAll = true }},
		{"KUBERNETES_NAMESPACE", environment("KUBERNETES_NAMESPACE", "shop"), nil, scoped("shop")},
		{"--namespaces", Environment{}, []string{"--namespaces=shop,bar,shop"}, scoped("shop", "bar")},
		{"--namespaces before KUBERNETES_NAMESPACE", Environment{Namespace: "foo"}, []string{"--namespaces", "shop"}, scoped("shop")},
		{"--namespaces-to-ignore of all", Environment{}, []string{"--namespaces-to-ignore=a,b"}, ignoring("a", "b")},
		{
			"--namespaces-to-ignore of what no namespace is called has no effect",
			Environment{},
			[]string{"--namespaces-to-ignore=a, b,,C,a"},
			func(s *settings) {
				ignoring("a")(s)
				s.Notes = []string{"--namespaces-to-ignore", "--namespaces-to-ignore", "--namespaces-to-ignore"}
			},
		},
		{
			"--namespaces-to-ignore of named ones has no effect",
			Environment{},
			[]string{"--namespaces=a,b", "--namespaces-to-ignore=b"},
			func(s *settings) {
				scoped("a", "b")(s)
				s.Notes = []string{"--namespaces-to-ignore"}
			},
		},
		{
			"--namespace-selector",
			Environment{},
			[]string{"--namespace-selector=team:shop,stage:*"},
			func(s *settings) { s.NamespaceSelector = "team=shop,stage" },
		},
		{
			"--namespace-selector as Reloader's chart quotes it",
			Environment{},
			[]string{`--namespace-selector="team=shop,stage in (a,b)"`},
			func(s *settings) { s.NamespaceSelector = "team=shop,stage in (a,b)" },
		},
		{
			"--namespace-selector of which Reloader reads only a part",
			Environment{},
			[]string{`--namespace-selector="team:shop,stage:a"`},
			func(s *settings) {
				s.NamespaceSelector = "team=shop,stage=a"
				s.Notes = []string{"--namespace-selector"}
			},
		},
		{
			"--namespace-selector given twice",
			Environment{},
			[]string{"--namespace-selector=team:shop", "--namespace-selector", "stage"},
			func(s *settings) { s.NamespaceSelector = "team=shop,stage" },
		},
		{
			"--namespace-selector with --namespaces-to-ignore",
			Environment{},
			[]string{"--namespace-selector=team", "--namespaces-to-ignore=a"},
			func(s *settings) {
				ignoring("a")(s)
				s.NamespaceSelector = "team"
			},
		},
		{
			"--namespace-selector of named namespaces has no effect",
			Environment{Namespace: "shop"},
			[]string{"--namespace-selector=team"},
			func(s *settings) {
				scoped("shop")(s)
				s.Notes = []string{"--namespace-selector"}
			},
		},
		{
			"--resource-label-selector",
			Environment{},
			[]string{"--resource-label-selector=app:web", "--resource-label-selector=tier:*"},
			func(s *settings) { s.Selector = "app=web,tier" },
		},
		{"--resources-to-ignore secrets", Environment{}, []string{"--resources-to-ignore=Secrets"}, func(s *settings) { s.Kinds = []string{"configmap"} }},
		{
			"--resources-to-ignore configmaps",
			Environment{},
			[]string{"--resources-to-ignore=configMaps"},
			func(s *settings) { s.Kinds = []string{"secret"} },
		},
		{"--ignored-workload-types jobs", Environment{}, []string{"--ignored-workload-types=jobs"}, func(s *settings) { s.Recreates = false }},
		{"--log-format json", Environment{}, []string{"--log-format=json"}, func(s *settings) { s.Format = "json" }},
		{"--log-format of another tool", Environment{}, []string{"--log-format=JSON"}, noted("--log-format")},
		{"--log-level of another tool", Environment{}, []string{"--log-level=loud"}, noted("--log-level")},
		{"--log-level empty", Environment{}, []string{"--log-level="}, noted("--log-level")},
		{"--log-level trace", Environment{}, []string{"--log-level=trace"}, func(s *settings) { s.Level = "debug" }},
		{"--log-level warning", Environment{}, []string{"--log-level=warning"}, func(s *settings) { s.Level = "warn" }},
		{"--log-level panic", Environment{}, []string{"--log-level=PANIC"}, func(s *settings) { s.Level = "error" }},
		{"--reload-on-create", Environment{}, []string{"--reload-on-create=true"}, func(s *settings) { s.Create = plan.CreateAlways }},
		{"--reload-on-delete", Environment{}, []string{"--reload-on-delete=true"}, func(s *settings) { s.Delete = true }},
		{
			"--ignored-workload-types",
			Environment{},
			[]string{"--ignored-workload-types=jobs,cronjobs"},
			func(s *settings) { s.Ignored, s.Starts, s.Recreates = []string{"cronjobs"}, false, false },
		},
		{"--reload-on-create false", Environment{}, []string{"--reload-on-create=false"}, same},
		{"--reload-on-create empty", Environment{}, []string{"--reload-on-create="}, same},
		{"--reload-on-create TRUE is off", Environment{}, []string{"--reload-on-create=TRUE"}, noted("--reload-on-create")},
		{"--reload-on-delete 1 is off", Environment{}, []string{"--reload-on-delete=1"}, noted("--reload-on-delete")},
		{"--reload-on-create given twice counts the last time", Environment{}, []string{"--reload-on-create=true", "--reload-on-create=false"}, same},
		{"--is-Argo-Rollouts yes is off", Environment{}, []string{"--is-Argo-Rollouts=yes"}, noted("--is-Argo-Rollouts")},
		{"--reload-on-delete false", Environment{}, []string{"--reload-on-delete=false"}, same},
		{"--is-Argo-Rollouts", Environment{}, []string{"--is-Argo-Rollouts=true"}, func(s *settings) { s.Rollouts = true }},
		{"--is-Argo-Rollouts false", Environment{}, []string{"--is-Argo-Rollouts=false"}, same},
		{"--sync-after-restart", Environment{}, []string{"--sync-after-restart"}, same},
		{
			"--enable-ha", environment("POD_NAME", "reloader-1", "POD_NAMESPACE", "tools"),
			[]string{"--enable-ha=true"},
			func(s *settings) { s.Replica, s.Lease = true, "tools/keyturn-reloader" },
		},
		{
			"RELOADER_DEPLOYMENT_NAME with --enable-ha",
			environment("POD_NAME", "reloader-1", "POD_NAMESPACE", "tools", "RELOADER_DEPLOYMENT_NAME", "shop-reloader"),
			[]string{"--enable-ha=true"},
			func(s *settings) { s.Replica, s.Lease = true, "tools/keyturn-reloader-shop-reloader" },
		},
		{"RELOADER_DEPLOYMENT_NAME without it", environment("RELOADER_DEPLOYMENT_NAME", "a b"), nil, same},
		{"a temporary directory", Environment{}, []string{"--state-dir="}, func(s *settings) { s.State = "" }},
		{"--enable-ha false", Environment{}, []string{"--enable-ha=false"}, same},
		{"--enable-csi-integration false", Environment{}, []string{"--enable-csi-integration=false"}, same},
		{
			"--enable-csi-integration",
			Environment{},
			[]string{"--enable-csi-integration"},
			func(s *settings) { s.Kinds = []string{"configmap", "secret", "secretproviderclass"} },
		},
		{"--webhook-url empty", Environment{}, []string{"--webhook-url="}, same},
		{"--pprof-addr alone", Environment{}, []string{"--pprof-addr=:1234"}, same},
		{"--enable-pprof", Environment{}, []string{"--enable-pprof"}, func(s *settings) { s.Pprof = ":6060" }},
		{"--enable-pprof at --pprof-addr", Environment{}, []string{"--enable-pprof", "--pprof-addr=:1234"}, func(s *settings) { s.Pprof = ":1234" }},
		{"an annotation flag with its default", Environment{}, []string{"--auto-annotation=reloader.stakater.com/auto"}, same},
		{"--webhook-url", Environment{}, []string{"--webhook-url=https://example.com"}, func(s *settings) { s.Webhook = "https://example.com" }},
		{"ALERT_ON_RELOAD without an address", environment("ALERT_ON_RELOAD", "true"), nil, same},
		{"ALERT_ON_RELOAD false", environment("ALERT_ON_RELOAD", "false"), nil, same},
		{"ALERT_ON_RELOAD", environment("ALERT_ON_RELOAD", "true", "ALERT_WEBHOOK_URL", "https://example.com"), nil, same},
		{"--reload-strategy env-vars", Environment{}, []string{"--reload-strategy=env-vars"}, func(s *settings) { s.Strategy = "env-vars" }},
		{"--max-rolls-per-hour", Environment{}, []string{"--max-rolls-per-hour=0"}, func(s *settings) { s.MaxRollsPerHour = 0 }},
		{"--settle 0", Environment{}, []string{"--settle=0"}, func(s *settings) { s.Settle = 0 }},
		{
			"--settle longer than it is by default at most",
			Environment{},
			[]string{"--settle=1m"},
			func(s *settings) { s.Settle, s.SettleMax = time.Minute, time.Minute },
		},
		{
			"our own flags",
			Environment{},
			[]string{
				"--cluster=west", "--kubeconfig=/k", "--state-dir=/s", "--fingerprint-key-file=/f", "--metrics-addr=:1", "--notify-config=/n",
			},
			func(s *settings) {
				s.Cluster, s.Kube, s.State, s.Key, s.Metrics, s.Notify = "west", "/k", "/s", "/f", ":1", "/n"
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--reload-strategy=annotations", "--state-dir=/state"}, tt.args...)
			r, err := translate(t, tt.env, args...)
			if err != nil {
				t.Fatal(err)
			}
			want := settings{
				Create: plan.CreateNever, Kinds: []string{"configmap", "secret"}, Level: "info", Format: "text", Metrics: ":9090", Cluster: "default", State: "/state",
				Strategy: "annotations", Starts: true, Recreates: true, Settle: time.Second, SettleMax: 10 * time.Second, MaxRollsPerHour: 30,
			}
			tt.want(&want)
			if diff := cmp.Diff(want, settingsOf(r)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheKeysOfAnnotationsCanBeChanged(t *testing.T) {
	for _, a := range annotationFlags {
		r, err := translate(t, Environment{}, "--"+a.name+"=example.com/other")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{a.name: "example.com/other"}
		if diff := cmp.Diff(want, r.Watcher.Sources.ReloaderAnnotations); diff != "" {
			t.Errorf("keys of the watcher (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, r.Actuator.Actuate.ReloaderAnnotations); diff != "" {
			t.Errorf("keys of the actuator (-want +got):\n%s", diff)
		}
		if !r.Actuator.Actuate.Reloader || !r.Actuator.Actuate.ReloaderMetrics {
			t.Error("the actuator does not behave and report as Reloader does")
		}
	}
}
