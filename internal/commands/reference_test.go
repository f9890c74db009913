package commands

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/tests/testkit"
)

// testCommand returns a command with everything that Reference handles.
func testCommand(t *testing.T) *cobra.Command {
	t.Helper()
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "keyturn-actuator", Short: "Rolls workloads.", Run: run}
	opts := telemetry.DefaultLogOptions()
	opts.AddFlags(root.PersistentFlags())
	new(testFlags).add(root.Flags())
	root.Flags().String("home", t.TempDir(), "`folder` of the user")
	root.Flags().Lookup("home").DefValue = "$HOME"
	root.Flags().String("internal", "", "not for users")
	root.Flags().String("old", "", "not for users any more")
	for _, err := range []error{
		root.Flags().MarkHidden("internal"), root.Flags().MarkDeprecated("old", "use --mode"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
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
	var got bytes.Buffer
	if err := Reference(&got, "Actuator", testCommand(t)); err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, filepath.Join("testdata", "reference.golden.md"), got.Bytes())
}

func TestReferenceIsTheSameAfterTheCommandRan(t *testing.T) {
	cmd := testCommand(t)
	var before, after bytes.Buffer
	if err := Reference(&before, "Actuator", cmd); err != nil {
		t.Fatal(err)
	}
	// Running the command adds flags and commands for help and completion.
	cmd.SetArgs([]string{"explain"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Reference(&after, "Actuator", cmd); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.String(), after.String()); diff != "" {
		t.Errorf("reference (-before +after):\n%s", diff)
	}
}

func TestReferenceReportsAWriterThatFails(t *testing.T) {
	if err := Reference(failingWriter{}, "Actuator", testCommand(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error is %v, want the writer's", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }
