package commands

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/tests/testkit"
)

// testFlags is one flag of each kind that a program is likely to have.
type testFlags struct {
	Cluster string
	Settle  time.Duration
	Max     int
	DryRun  bool
	Kinds   []string
	Mode    mode
}

// mode is a flag's value with a type of its own.
type mode string

func (m *mode) String() string { return string(*m) }
func (m *mode) Type() string   { return "mode" }
func (m *mode) Set(s string) error {
	if s != "all" && s != "opt-in" {
		return errors.New("all or\nopt-in")
	}
	*m = mode(s)
	return nil
}

func (f *testFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.Cluster, "cluster-name", "default", "name of this `cluster`; a|b are two")
	flags.DurationVar(&f.Settle, "settle", time.Second, "quiet time before a roll")
	flags.IntVar(&f.Max, "max-rollouts", 10, "rollouts in progress at a time, at most")
	flags.BoolVar(&f.DryRun, "dry-run", false, "patch nothing")
	flags.StringSliceVar(&f.Kinds, "kinds", nil, "`kinds` to watch")
	f.Mode = "opt-in"
	flags.Var(&f.Mode, "mode", "who rolls")
}

func TestEnvironmentMirrorsFlags(t *testing.T) {
	defaults := testFlags{Cluster: "default", Settle: time.Second, Max: 10, Mode: "opt-in"}
	with := func(change func(*testFlags)) testFlags {
		flags := defaults
		change(&flags)
		return flags
	}
	type env = map[string]string
	for _, tt := range []struct {
		name string
		env  env
		args string
		want testFlags
		err  string
	}{
		{
			name: "a variable is taken where the flag was not set",
			env:  env{"KEYTURN_CLUSTER_NAME": "west", "KEYTURN_SETTLE": "5s", "KEYTURN_DRY_RUN": "true"},
			want: with(func(f *testFlags) { f.Cluster, f.Settle, f.DryRun = "west", 5*time.Second, true }),
		},
		{
			name: "the command line wins also with the default's own value, even over one that is not valid",
			env:  env{"KEYTURN_MAX_ROLLOUTS": "many"}, args: "--max-rollouts=10", want: defaults,
		},
		{
			name: "a list is separated by commas", env: env{"KEYTURN_KINDS": "secret,configmap"},
			want: with(func(f *testFlags) { f.Kinds = []string{"secret", "configmap"} }),
		},
		{
			name: "a variable set to nothing is the empty value", env: env{"KEYTURN_CLUSTER_NAME": ""},
			want: with(func(f *testFlags) { f.Cluster = "" }),
		},
		{
			name: "variables of others are left alone",
			env:  env{"KEYTURN_SERVICE_HOST": "10.0.0.1", "CLUSTER_NAME": "x", "KEYTURN_HELP": "no"}, want: defaults,
		},
		{
			name: "every variable that cannot be used has a line",
			env:  env{"KEYTURN_SETTLE": "soon", "KEYTURN_MAX_ROLLOUTS": "many\nmore", "KEYTURN_DRY_RUN": "", "KEYTURN_MODE": "some"},
			err: `KEYTURN_DRY_RUN: "", want true or false` + "\n" +
				`KEYTURN_MAX_ROLLOUTS: "many\nmore", want a whole number` + "\n" +
				`KEYTURN_MODE: "some", want a mode (all or; opt-in)` + "\n" +
				`KEYTURN_SETTLE: "soon", want a duration such as 500ms, 10s or 5m`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			var got testFlags
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			got.add(flags)
			testkit.Must(t, flags.Parse(strings.Fields(tt.args)))
			var text string
			if err := Environment(flags, os.LookupEnv); err != nil {
				text = err.Error()
			}
			testkit.WantEqual(t, "error", tt.err, text)
			if diff := cmp.Diff(tt.want, got); diff != "" && tt.err == "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
