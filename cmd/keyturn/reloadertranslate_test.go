package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/program"
	"github.com/keyturn/keyturn/tests/testkit"
)

// translated parses arguments like the command.
func translated(t *testing.T, env environment, args ...string) (*program.Reloader, error) {
	t.Helper()
	values := defaultFlags()
	flags := pflag.NewFlagSet("reloader", pflag.ContinueOnError)
	values.addTo(flags)
	err := flags.Parse(args)
	if values.Arguments = flags.Args(); err != nil {
		t.Fatal(err)
	}
	return translate(values, env, "1.2.3")
}

// environmentOf returns the environment of variables, each followed by its value.
func environmentOf(variables ...string) environment {
	return readEnvironment(func(name string) string {
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
	RollAll, Delete             bool
	Jobs                        []string
	Create                      plan.Creation
	Replica                     bool
	Lease                       string
	Workloads                   []string
	Level, Format               string
	Pprof, Metrics, Cluster     string
	Webhook, Strategy           string
	State, Key, Notify, Kube    string
	Notes                       []string
	Settle                      time.Duration
	MaxRollsPerHour             int
}

func settingsOf(r *program.Reloader) settings {
	s := settings{
		Watched: r.Watcher.Sources.Namespaces, Rolled: r.Actuator.Actuate.Namespaces, Kinds: r.Watcher.Sources.Kinds,
		Unwatched: r.Watcher.Sources.IgnoreNamespaces, Unrolled: r.Actuator.Actuate.IgnoreNamespaces,
		Selector: r.Watcher.Sources.Selector, NamespaceSelector: r.Watcher.Sources.NamespaceSelector,
		RollAll: r.Actuator.Actuate.RollAll,
		Delete:  r.Actuator.Actuate.RollOnDelete, Create: r.Actuator.Actuate.RollOnCreate, Workloads: r.Actuator.Actuate.WorkloadKinds,
		Jobs:  r.Actuator.Actuate.Jobs,
		Level: r.Process.Log.Level, Format: r.Process.Log.Format,
		Pprof: r.PprofAddr, Metrics: r.Process.MetricsAddr, Cluster: r.Process.Cluster, Webhook: r.Actuator.Actuate.Reloader.WebhookURL,
		Strategy: r.Actuator.Actuate.Reloader.Strategy,
		State:    r.StateDir, Key: r.Watcher.Sources.KeyFile, Notify: r.Actuator.Notify.ConfigFile, Kube: r.Watcher.Process.Kube.Kubeconfig,
		Settle: r.Actuator.Actuate.Settle, MaxRollsPerHour: r.Actuator.Actuate.MaxRollsPerHour,
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
		env  environment
		args []string
		want func(*settings)
	}{
		{"--auto-reload-all", environment{}, []string{"--auto-reload-all"}, func(s *settings) { s.RollAll = true }},
		{"KUBERNETES_NAMESPACE", environmentOf("KUBERNETES_NAMESPACE", "shop"), nil, scoped("shop")},
		{"--namespaces", environment{}, []string{"--namespaces=shop,bar,shop"}, scoped("bar", "shop")},
		{"--namespaces before KUBERNETES_NAMESPACE", environment{Namespace: "foo"}, []string{"--namespaces", "shop"}, scoped("shop")},
		{"--namespaces-to-ignore of all", environment{}, []string{"--namespaces-to-ignore=a,b"}, ignoring("a", "b")},
		{
			"--namespaces-to-ignore of what no namespace is called has no effect",
			environment{},
			[]string{"--namespaces-to-ignore=a, b,,C,a"},
			func(s *settings) {
				ignoring("a")(s)
				s.Notes = []string{"--namespaces-to-ignore", "--namespaces-to-ignore", "--namespaces-to-ignore"}
			},
		},
		{
			"--namespaces-to-ignore of named ones has no effect",
			environment{},
			[]string{"--namespaces=a,b", "--namespaces-to-ignore=b"},
			func(s *settings) {
				scoped("a", "b")(s)
				s.Notes = []string{"--namespaces-to-ignore"}
			},
		},
		{
			"--namespace-selector",
			environment{},
			[]string{"--namespace-selector=team:shop,stage:*"},
			func(s *settings) { s.NamespaceSelector = "team=shop,stage" },
		},
		{
			"--namespace-selector as Reloader's chart quotes it",
			environment{},
			[]string{`--namespace-selector="team=shop,stage in (a,b)"`},
			func(s *settings) { s.NamespaceSelector = "team=shop,stage in (a,b)" },
		},
		{
			"--namespace-selector of which Reloader reads only a part",
			environment{},
			[]string{`--namespace-selector="team:shop,stage:a"`},
			func(s *settings) {
				s.NamespaceSelector = "team=shop,stage=a"
				s.Notes = []string{"--namespace-selector"}
			},
		},
		{
			"--namespace-selector with --namespaces-to-ignore",
			environment{},
			[]string{"--namespace-selector=team", "--namespaces-to-ignore=a"},
			func(s *settings) {
				ignoring("a")(s)
				s.NamespaceSelector = "team"
			},
		},
		{
			"--namespace-selector of named namespaces has no effect",
			environment{Namespace: "shop"},
			[]string{"--namespace-selector=team"},
			func(s *settings) {
				scoped("shop")(s)
				s.Notes = []string{"--namespace-selector"}
			},
		},
		{
			"--resource-label-selector",
			environment{},
			[]string{"--resource-label-selector=app:web", "--resource-label-selector=tier:*"},
			func(s *settings) { s.Selector = "app=web,tier" },
		},
		{"--resources-to-ignore secrets", environment{}, []string{"--resources-to-ignore=Secrets"}, func(s *settings) { s.Kinds = []string{"configmap"} }},
		{
			"--resources-to-ignore configmaps",
			environment{},
			[]string{"--resources-to-ignore=configMaps"},
			func(s *settings) { s.Kinds = []string{"secret"} },
		},
		{"--ignored-workload-types jobs", environment{}, []string{"--ignored-workload-types=jobs"}, func(s *settings) { s.Jobs = []string{"start"} }},
		{"--log-format json", environment{}, []string{"--log-format=json"}, func(s *settings) { s.Format = "json" }},
		{"--log-format of another tool", environment{}, []string{"--log-format=JSON"}, noted("--log-format")},
		{"--log-level of another tool", environment{}, []string{"--log-level=loud"}, noted("--log-level")},
		{"--log-level trace", environment{}, []string{"--log-level=trace"}, func(s *settings) { s.Level = "debug" }},
		{"--log-level panic", environment{}, []string{"--log-level=PANIC"}, func(s *settings) { s.Level = "error" }},
		{"--reload-on-create", environment{}, []string{"--reload-on-create=true"}, func(s *settings) { s.Create = plan.CreateAlways }},
		{"--reload-on-delete", environment{}, []string{"--reload-on-delete=true"}, func(s *settings) { s.Delete = true }},
		{
			"--ignored-workload-types",
			environment{},
			[]string{"--ignored-workload-types=jobs,cronjobs"},
			func(s *settings) { s.Workloads, s.Jobs = []string{"deployment", "statefulset", "daemonset"}, nil },
		},
		{"--reload-on-create empty", environment{}, []string{"--reload-on-create="}, same},
		{"--reload-on-create TRUE is off", environment{}, []string{"--reload-on-create=TRUE"}, noted("--reload-on-create")},
		{"--is-Argo-Rollouts", environment{}, []string{"--is-Argo-Rollouts=true"}, func(s *settings) { s.Workloads = append(s.Workloads, "rollout") }},
		{"--sync-after-restart", environment{}, []string{"--sync-after-restart"}, same},
		{
			"--enable-ha", environmentOf("POD_NAME", "reloader-1", "POD_NAMESPACE", "tools"),
			[]string{"--enable-ha=true"},
			func(s *settings) { s.Replica, s.Lease = true, "tools/keyturn-reloader" },
		},
		{
			"RELOADER_DEPLOYMENT_NAME with --enable-ha",
			environmentOf("POD_NAME", "reloader-1", "POD_NAMESPACE", "tools", "RELOADER_DEPLOYMENT_NAME", "shop-reloader"),
			[]string{"--enable-ha=true"},
			func(s *settings) { s.Replica, s.Lease = true, "tools/keyturn-reloader-shop-reloader" },
		},
		{"RELOADER_DEPLOYMENT_NAME without it", environmentOf("RELOADER_DEPLOYMENT_NAME", "a b"), nil, same},
		{
			"--enable-csi-integration",
			environment{},
			[]string{"--enable-csi-integration"},
			func(s *settings) { s.Kinds = []string{"configmap", "secret", "secretproviderclass"} },
		},
		{"--pprof-addr alone", environment{}, []string{"--pprof-addr=:1234"}, same},
		{"--enable-pprof", environment{}, []string{"--enable-pprof"}, func(s *settings) { s.Pprof = ":6060" }},
		{"--enable-pprof at --pprof-addr", environment{}, []string{"--enable-pprof", "--pprof-addr=:1234"}, func(s *settings) { s.Pprof = ":1234" }},
		{"an annotation flag with its default", environment{}, []string{"--auto-annotation=reloader.stakater.com/auto"}, same},
		{"--webhook-url", environment{}, []string{"--webhook-url=https://example.com"}, func(s *settings) { s.Webhook = "https://example.com" }},
		{"--reload-strategy env-vars", environment{}, []string{"--reload-strategy=env-vars"}, func(s *settings) { s.Strategy = "env-vars" }},
		{"--max-rolls-per-hour", environment{}, []string{"--max-rolls-per-hour=0"}, func(s *settings) { s.MaxRollsPerHour = 0 }},
		{"--settle 0", environment{}, []string{"--settle=0"}, func(s *settings) { s.Settle = 0 }},
		{
			"our own flags",
			environment{},
			[]string{"--cluster=west", "--kubeconfig=/k", "--state-dir=/s", "--fingerprint-key-file=/f", "--metrics-addr=:1", "--notify-config=/n"},
			func(s *settings) {
				s.Cluster, s.Kube, s.State, s.Key, s.Metrics, s.Notify = "west", "/k", "/s", "/f", ":1", "/n"
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"--reload-strategy=annotations", "--state-dir=/state"}, tt.args...)
			r, err := translated(t, tt.env, args...)
			testkit.Must(t, err)
			want := settings{
				Create: plan.CreateNever, Kinds: []string{"configmap", "secret"}, Level: "info", Format: "text", Metrics: ":9090", Cluster: "default", State: "/state",
				Strategy: "annotations", Jobs: []string{"recreate", "start"}, Workloads: []string{"deployment", "statefulset", "daemonset", "cronjob"}, Settle: time.Second, MaxRollsPerHour: 30,
			}
			tt.want(&want)
			testkit.WantEqual(t, "settings", want, settingsOf(r))
		})
	}
}

func TestTheKeysOfAnnotationsCanBeChanged(t *testing.T) {
	for name := range annotationFlags {
		r, err := translated(t, environment{}, "--"+name+"=example.com/other")
		testkit.Must(t, err)
		want := map[string]string{name: "example.com/other"}
		testkit.WantEqual(t, "keys of the watcher", want, r.Watcher.Sources.Reloader.Annotations)
		testkit.WantEqual(t, "keys of the actuator", want, r.Actuator.Actuate.Reloader.Annotations)
		if !r.Actuator.Actuate.Reloader.On || !r.Actuator.Actuate.Reloader.Metrics {
			t.Error("the actuator does not behave and report as Reloader does")
		}
	}
}

func TestWhatCannotBeDoneIsRefusedByName(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  environment
		args []string
		want string
	}{
		{"a replica without a name", environmentOf("POD_NAMESPACE", "shop"), []string{"--enable-ha"}, `POD_NAME: "", want the one of this pod with --enable-ha`},
		{"a replica of no namespace", environmentOf("POD_NAME", "a"), []string{"--enable-ha"}, `POD_NAMESPACE: "", want the one of this pod with --enable-ha`},
		{
			"replicas of what is no Deployment", environmentOf("POD_NAME", "a", "POD_NAMESPACE", "b", "RELOADER_DEPLOYMENT_NAME", "a b"),
			[]string{"--enable-ha"},
			`RELOADER_DEPLOYMENT_NAME: "a b", want the name of this pod's Deployment with --enable-ha`,
		},
		{
			"replicas that call a webhook", environmentOf("POD_NAME", "a", "POD_NAMESPACE", "shop"),
			[]string{"--enable-ha", "--webhook-url=https://example.com"},
			`--enable-ha: "true", want false with --webhook-url, which every replica would call`,
		},
		{"a webhook", environment{}, []string{"--webhook-url=example"}, "--webhook-url: "},
		{"a kind of workload", environment{}, []string{"--ignored-workload-types=pods"}, `--ignored-workload-types: "pods", want jobs, cronjobs or both`},
		{"a kind of source", environment{}, []string{"--resources-to-ignore=pods"}, `--resources-to-ignore: "pods", want configmaps or secrets`},
		{
			"both kinds of source",
			environment{},
			[]string{"--resources-to-ignore=configmaps,secrets"},
			`--resources-to-ignore: "configmaps,secrets", want configmaps or secrets, not both`,
		},
		{"a strategy", environment{}, []string{"--reload-strategy=default"}, `--reload-strategy: "default", want env-vars or annotations`},
		{"an address", environment{}, []string{"--enable-pprof", "--pprof-addr=nowhere"}, `--pprof-addr: "nowhere", want host:port or :port`},
		{"a namespace", environment{}, []string{"--namespaces=Shop"}, `--namespaces: "Shop", want the name of a namespace`},
		{"the namespace of the environment", environment{Namespace: "-"}, nil, `KUBERNETES_NAMESPACE: "-", want the name of a namespace`},
		{"a selector of namespaces", environment{}, []string{"--namespace-selector=a:b:c"}, `--namespace-selector: "a:b:c", want a label selector: `},
		{"a selector of sources", environment{}, []string{"--resource-label-selector=="}, `--resource-label-selector: "=", want a label selector: `},
		{"a cluster", environment{}, []string{"--cluster=a.b"}, "--cluster: "},
		{"the key of an annotation", environment{}, []string{"--auto-annotation=a b"}, `--auto-annotation: "a b", want the key of an annotation`},
		{
			"one key for two annotations",
			environment{},
			[]string{"--auto-annotation=a/b", "--auto-search-annotation=a/b"},
			`--auto-annotation and auto-search-annotation: both are "a/b"`,
		},
		{"a limit of rolls", environment{}, []string{"--max-rolls-per-hour=-1"}, `--max-rolls-per-hour: "-1", want 0 or more`},
		{"a debounce", environment{}, []string{"--settle=-1s"}, `--settle: "-1s", want 0 or more`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := translated(t, tt.env, tt.args...)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line that begins with %s", err, tt.want)
			}
		})
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	_, err := translated(t, environmentOf("KUBERNETES_NAMESPACE", "-"), "--enable-ha", "--reload-strategy=x", "--namespaces=A,B", "--auto-annotation=x y")
	if err == nil || len(strings.Split(err.Error(), "\n")) != 6 {
		t.Errorf("got %v, want six lines", err)
	}
}

// Reloader ignores an argument that is no flag, such as the value after a flag that is on or off.
func TestArgumentsThatReloaderIgnoresAreNoted(t *testing.T) {
	r, err := translated(t, environment{}, "--auto-reload-all", "true", "--reload-on-create", "true", "x")
	testkit.Must(t, err)
	const effect = "none, as in Reloader; a flag that is on or off takes its value as --flag=value"
	want := []program.Note{{Setting: `argument "true"`, Text: effect}, {Setting: `argument "x"`, Text: effect}}
	testkit.WantEqual(t, "notes", want, r.Notes)
	if !r.Actuator.Actuate.RollAll || r.Actuator.Actuate.RollOnCreate != "always" {
		t.Error("the flags before and after them do not count")
	}
}
