package telemetry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestLogOptionsValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*LogOptions)
		want   string // empty if the options are valid
	}{
		{"the defaults are valid", func(*LogOptions) {}, ""},
		{
			"a level is one of four", func(o *LogOptions) { o.Level = "loud" },
			`--log-level: "loud", want debug, info, warn or error`,
		},
		{
			"a level is lower case", func(o *LogOptions) { o.Level = "INFO" },
			`--log-level: "INFO", want debug, info, warn or error`,
		},
		{
			"all errors are reported, one line each", func(o *LogOptions) { *o = LogOptions{} },
			`--log-level: "", want debug, info, warn or error` + "\n" +
				`--log-format: "", want json or text`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := DefaultLogOptions()
			tt.change(&opts)
			testkit.WantError(t, opts.Validate(), tt.want)
		})
	}
}

func TestLogOptionsFlagsSetEveryField(t *testing.T) {
	opts := DefaultLogOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	opts.AddFlags(flags)
	if diff := cmp.Diff(DefaultLogOptions(), opts); diff != "" {
		t.Errorf("adding the flags changed the defaults (-want +got):\n%s", diff)
	}
	must(t, flags.Parse([]string{"--log-level=debug", "--log-format=text"}))
	if diff := cmp.Diff(LogOptions{Level: "debug", Format: "text"}, opts); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
