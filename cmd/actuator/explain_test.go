package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// undecided are the flags of the actuator that explain does not have: they decide how it connects and reports, how fast it is, and whom a
// workload waits for, which explain reads from the history. A prefix ends with a hyphen.
var undecided = []string{
	"log-", "metrics-addr", "health-addr", "replaces-cluster", "nats-", "stores-domain", "fleet-", "notify-", "leader-elect", "lease-namespace",
	"settle", "settle-max", "max-rollouts", "max-rollouts-per-namespace", "rollout-timeout", "patch-workers", "canary", "bake",
	"force-sync", "max-syncs", "reloader-strategy", "reloader-metrics", "help", "version",
}

func isUndecided(name string) bool {
	for _, other := range undecided {
		if name == other || strings.HasSuffix(other, "-") && strings.HasPrefix(name, other) {
			return true
		}
	}
	return false
}

// explaining returns the command explain.
func explaining(t *testing.T, actuator *cobra.Command) *cobra.Command {
	t.Helper()
	cmd, _, err := actuator.Find([]string{"explain"})
	if err != nil {
		t.Fatal(err)
	}
	cmd.InheritedFlags() // joins those of the actuator
	return cmd
}

func TestExplainHasEachFlagByWhichTheActuatorDecides(t *testing.T) {
	actuator := newCommand(0)
	explain := explaining(t, actuator)
	actuator.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		same := explain.Flag(flag.Name)
		switch {
		case isUndecided(flag.Name):
			if same != nil && explain.LocalNonPersistentFlags().Lookup(flag.Name) != nil && flag.Name != "help" {
				t.Errorf("--%s: explain has it, so it decides something", flag.Name)
			}
		case same == nil:
			t.Errorf("--%s: explain does not have it. In the actuator's pod it would decide otherwise than the actuator does", flag.Name)
		case same.DefValue != flag.DefValue || same.Value.Type() != flag.Value.Type():
			t.Errorf("--%s: explain has a %s with the default %q, want a %s with %q", flag.Name, same.Value.Type(), same.DefValue, flag.Value.Type(),
				flag.DefValue)
		}
	})
}

// argument is a flag in the arguments of a container.
var argument = regexp.MustCompile(`(?m)^\s*(?:- |value: |- path: )?--([a-z-]+)`)

func TestWhatIsDeployedSetsNoFlagThatTheCommandsInThePodDoNotSee(t *testing.T) {
	actuator := newCommand(0)
	explain := explaining(t, actuator)
	seen := 0
	err := filepath.WalkDir("../../deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, found := range argument.FindAllStringSubmatch(string(content), -1) {
			seen++
			if actuator.LocalNonPersistentFlags().Lookup(found[1]) != nil && explain.LocalNonPersistentFlags().Lookup(found[1]) != nil {
				t.Errorf("%s: --%s is an argument, want it as a variable KEYTURN_..., which commands in the pod have, too", path, found[1])
			}
		}
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%d arguments found, %v", seen, err)
	}
}
