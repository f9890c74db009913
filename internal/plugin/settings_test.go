package plugin

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestCommandsTakeFromAClusterOnlyWhatDecides sets the variable of each flag in an installation: those of all commands, and those of the actuator. It
// fails for a flag that is new and taken, and for a decision that is new and not taken: add it to the lists here, or say why explain needs none.
func TestCommandsTakeFromAClusterOnlyWhatDecides(t *testing.T) {
	p := New("test")
	flags := make(map[string]*pflag.Flag) // by command and flag
	settings := make(map[string]string)
	set := func(flag *pflag.Flag) { settings[commands.EnvironmentVariable(flag.Name)] = otherThanDefault(flag) }
	for _, cmd := range p.Command().Commands() {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			flags[cmd.Name()+" --"+flag.Name] = flag
			set(flag)
		})
	}
	if _, known := flags["timeline --file"]; !known || len(flags) < 200 {
		t.Fatalf("got %d flags of commands, want all", len(flags))
	}
	flagsOf(&p.settings).VisitAll(set)
	delete(settings, "")
	before := make(map[string]string)
	for name, flag := range flags {
		before[name] = flag.Value.String()
	}
	decisions := defaultsOf(actuate.DefaultOptions())

	actuator := actuatorIn("keyturn-system")
	container := &actuator.Spec.Template.Spec.Containers[1]
	container.Args, container.Env = nil, nil
	p.access.typed = fake.NewClientset(actuator, configMap("keyturn", settings))
	testkit.Must(t, p.settle(t.Context(), new(strings.Builder)))

	ofCommands := make(map[string]bool)
	for name, flag := range flags {
		if flag.Value.String() != before[name] {
			ofCommands[flag.Name] = true
		}
	}
	testkit.WantEqual(t, "flags of commands that a cluster sets", []string{"cluster", "trace-url"}, slices.Sorted(maps.Keys(ofCommands)))
	var decided []string
	for name, value := range defaultsOf(p.settings) {
		if value != decisions[name] {
			decided = append(decided, name)
		}
	}
	slices.Sort(decided)
	want := []string{
		"dry-run", "ignore-namespaces", "jobs", "max-rolls-per-hour", "min-interval", "namespaces", "reload-in-place", "reloader", "roll-all",
		"roll-on-create", "roll-on-delete", "stores-from", "window", "workload-kinds",
	}
	testkit.WantEqual(t, "settings of the actuator that are taken", want, decided)
	decisive := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.settings.AddDecisionFlags(decisive)
	decisive.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(taken, flag.Name) && !slices.Contains(copied, flag.Name) {
			t.Errorf("--%s decides, and is not taken", flag.Name)
		}
	})
}

// flagsOf returns the flags of the actuator, whose defaults are the options.
func flagsOf(options *actuate.Options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("actuator", pflag.ContinueOnError)
	options.AddFlags(flags)
	flags.StringSliceVar(&options.Namespaces, "namespaces", options.Namespaces, "")
	flags.StringSliceVar(&options.StoresFrom, "stores-from", options.StoresFrom, "")
	return flags
}

// defaultsOf returns the values of the actuator's flags, by name.
func defaultsOf(options actuate.Options) map[string]string {
	values := make(map[string]string)
	flagsOf(&options).VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.DefValue })
	return values
}

// otherThanDefault returns a valid value of a flag that is not its default.
func otherThanDefault(flag *pflag.Flag) string {
	switch kind := flag.Value.Type(); {
	case kind == "bool" && flag.DefValue == "true":
		return "false"
	case kind == "bool":
		return "true"
	case kind == "int":
		return "7"
	case kind == "duration":
		return "7m"
	case kind == "format":
		return "json"
	case flag.Name == "reloader":
		return "on"
	}
	return "other"
}

func TestNoFileOfThisMachineIsReadInsteadOfOneOfTheActuator(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere")) // so that nothing can be copied
	client := fake.NewClientset(actuatorIn("keyturn-system"), configMap("keyturn", map[string]string{
		"KEYTURN_STORE_ACCESS": "/etc/keyturn-store-access/grants.yaml", "KEYTURN_TARGETS_CONFIG": "/etc/keyturn-store-access/targets.yaml",
	}))
	p, said := prepared(t, client, func(*Plugin) {})
	if p.settings.StoreAccess != "" || p.settings.TargetsConfig != "" || !strings.Contains(said, "copying the file /etc/keyturn-store-access") {
		t.Errorf("got the files %q and %q, and %q", p.settings.StoreAccess, p.settings.TargetsConfig, said)
	}
}
