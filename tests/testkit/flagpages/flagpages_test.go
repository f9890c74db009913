package flagpages

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mode is a flag's value with a type of its own.
type mode string

func (m *mode) String() string     { return string(*m) }
func (m *mode) Type() string       { return "mode" }
func (m *mode) Set(s string) error { *m = mode(s); return nil }

// testCommand returns a command with everything that a page has.
func testCommand(t *testing.T) *cobra.Command {
	t.Helper()
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "keyturn-actuator", Short: "Rolls workloads.", Run: run}
	root.PersistentFlags().String("log-format", "json", "log `format`: json or text")
	root.PersistentFlags().String("log-level", "info", "least severe `level` to log: debug, info, warn or error")
	flags, rolls := root.Flags(), mode("opt-in")
	flags.String("cluster-name", "default", "name of this `cluster`; a|b are two")
	flags.Duration("settle", time.Second, "quiet time before a roll")
	flags.Int("max-rollouts", 10, "rollouts in progress at a time, at most")
	flags.Bool("dry-run", false, "patch nothing")
	flags.StringSlice("kinds", nil, "`kinds` to watch")
	flags.Var(&rolls, "mode", "who rolls")
	flags.String("home", t.TempDir(), "`folder` of the user")
	flags.Lookup("home").DefValue = "$HOME"
	flags.String("internal", "", "not for users")
	flags.Lookup("internal").Hidden = true
	flags.String("old", "", "not for users any more")
	flags.Lookup("old").Deprecated = "use --mode"
	explain := &cobra.Command{Use: "explain", Short: "Says what would roll.", Run: run}
	explain.Flags().StringP("output", "o", "text", "`format` of the answer")
	explain.AddCommand(&cobra.Command{Use: "why", Short: "Says why.", Run: run})
	root.AddCommand(
		explain,
		&cobra.Command{Use: "secret-door", Hidden: true, Run: run},
		&cobra.Command{Use: "declare", Short: "Makes the streams.", Run: run},
	)
	return root
}

func TestReferenceIsTheGoldenFile(t *testing.T) {
	cmd := testCommand(t)
	before := reference("Actuator", cmd)
	testkit.Golden(t, "testdata/reference.golden.md", []byte(before))
	// Running the command adds flags and commands for help and completion.
	cmd.SetArgs([]string{"explain"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, reference("Actuator", cmd)); diff != "" {
		t.Errorf("after it has run (-before +after):\n%s", diff)
	}
}
