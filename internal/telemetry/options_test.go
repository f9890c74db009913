package telemetry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestOptionsValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string // empty where the options are valid
	}{
		{"the defaults are valid", func(*Options) {}, ""},
		{"no address at all is valid", func(o *Options) { o.MetricsAddr, o.HealthAddr = "", "" }, ""},
		{"a loopback address with any free port is valid", func(o *Options) { o.HealthAddr = "[::1]:0" }, ""},
		{
			"a level is one of four", func(o *Options) { o.LogLevel = "loud" },
			`--log-level: "loud" is not debug, info, warn or error`,
		},
		{
			"a level is lower case", func(o *Options) { o.LogLevel = "INFO" },
			`--log-level: "INFO" is not debug, info, warn or error`,
		},
		{
			"a port alone is no address", func(o *Options) { o.MetricsAddr = "8080" },
			`--metrics-addr: "8080" is not host:port, :port or empty`,
		},
		{
			"a port is at most 65535", func(o *Options) { o.MetricsAddr = ":65536" },
			`--metrics-addr: ":65536" is not host:port, :port or empty`,
		},
		{
			"all errors are reported, one line each", func(o *Options) { *o = Options{HealthAddr: ":http"} },
			`--log-level: "" is not debug, info, warn or error` + "\n" +
				`--log-format: "" is not json or text` + "\n" +
				`--health-addr: ":http" is not host:port, :port or empty`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := DefaultOptions()
			tt.change(&opts)
			var got string
			if err := opts.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsFlagsSetEveryField(t *testing.T) {
	opts := DefaultOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.AddFlags(flags)
	if diff := cmp.Diff(DefaultOptions(), opts); diff != "" {
		t.Errorf("adding the flags changed the defaults (-want +got):\n%s", diff)
	}
	err := flags.Parse([]string{"--log-level=debug", "--log-format=text", "--metrics-addr=:1", "--health-addr=:2"})
	if err != nil {
		t.Fatal(err)
	}
	want := Options{LogLevel: "debug", LogFormat: "text", MetricsAddr: ":1", HealthAddr: ":2"}
	if diff := cmp.Diff(want, opts); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
