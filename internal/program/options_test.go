package program

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestOptionsValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string // empty if the options are valid
	}{
		{"no address at all, and a loopback address with any free port", func(o *Options) { o.MetricsAddr, o.HealthAddr = "", "[::1]:0" }, ""},
		{"a port is at most 65535", func(o *Options) { o.MetricsAddr = ":65536" }, `--metrics-addr: ":65536", want host:port, :port or empty`},
		{
			"all errors are reported, one line each", func(o *Options) { *o = Options{HealthAddr: ":http"} },
			`--log-level: "", want debug, info, warn or error` + "\n" + `--log-format: "", want json or text` + "\n" +
				`--health-addr: ":http", want host:port, :port or empty`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := defaultOptions("watcher", "1")
			tt.change(&opts)
			testkit.WantError(t, opts.validate(), tt.want)
		})
	}
}

func TestOptionsFlagsSetEveryField(t *testing.T) {
	opts := defaultOptions("watcher", "1")
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.addClusterFlags(flags)
	opts.addRunFlags(flags)
	want := defaultOptions("watcher", "1")
	want.NATS.URL = "nats://127.0.0.1:4222"
	testkit.WantEqual(t, "adding the flags changed the defaults", want, opts)
	err := flags.Parse([]string{"--cluster=west", "--kubeconfig=k", "--nats-url=n", "--log-level=debug", "--log-format=text", "--metrics-addr=:1", "--health-addr=:2", "--replaces-cluster=u"})
	testkit.Must(t, err)
	want.Cluster, want.Kube.Kubeconfig, want.NATS.URL, want.Log.Level, want.Log.Format = "west", "k", "n", "debug", "text"
	want.MetricsAddr, want.HealthAddr, want.ReplacesCluster = ":1", ":2", "u"
	testkit.WantEqual(t, "options", want, opts)
}
