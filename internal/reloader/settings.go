package reloader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// flag is the name of the flag of Settings.
const flag = "reloader"

// webhook is the prefix of the last setting, whose value may contain commas.
const webhook = "webhook-url="

// The values of Settings.Strategy, which are those of Reloader's flag.
const (
	StrategyMarker    = "annotations"
	StrategyVariables = "env-vars"
)

// Settings are the behaviors of Reloader that Keyturn imitates. The zero value is none, with Reloader's default keys of annotations.
type Settings struct {
	// On makes Keyturn behave like Reloader where the two differ.
	On bool
	// Strategy selects what a roll writes on the pod template for Reloader, if On is set, in addition to Keyturn's annotations: Reloader's marker
	// (StrategyMarker) or its environment variables (StrategyVariables). Empty means StrategyMarker.
	Strategy string
	// Metrics also serves metrics under the names of Reloader.
	Metrics bool
	// Annotations replaces keys of Reloader's annotations, by the names of its flags: see Parse.
	Annotations map[string]string
	// WebhookURL is the URL to post to instead of rolling workloads. It is a secret. Empty means that workloads are rolled.
	WebhookURL string
	// Unknown are the names of settings that do not exist.
	Unknown []string
}

// AddFlag adds the flag of the settings.
func AddFlag(flags *pflag.FlagSet, s *Settings) {
	var all Annotations
	flags.Var(s, flag, "what to do like Stakater's Reloader, for a migration, as comma-separated `settings`: on, to behave like it where the two "+
		"differ; strategy="+StrategyVariables+", for a rollout to write its variables instead of its marker; metrics, to serve metrics under its "+
		"names, too; other keys for its annotations, by the names of its flags: "+strings.Join(slices.Sorted(maps.Keys(all.Named())), ", ")+
		"; and last "+webhook+"URL, to post to that when a Secret, a ConfigMap or a secret in a store changes, instead of rolling workloads")
}

// Set implements pflag.Value. It returns no error, because pflag would print the text, which may contain a secret: see Validate.
func (s *Settings) Set(text string) error {
	*s = Settings{}
	text, s.WebhookURL, _ = strings.Cut(text, webhook)
	for setting := range strings.SplitSeq(text, ",") {
		name, value, valued := strings.Cut(setting, "=")
		switch {
		case setting == "":
		case setting == "on":
			s.On = true
		case setting == "metrics":
			s.Metrics = true
		case name == "strategy" && valued:
			s.Strategy = value
		case strings.HasSuffix(name, "-annotation") && valued:
			if s.Annotations == nil {
				s.Annotations = make(map[string]string)
			}
			s.Annotations[name] = value
		default:
			s.Unknown = append(s.Unknown, name)
		}
	}
	return nil
}

// Type implements pflag.Value.
func (s *Settings) Type() string { return "settings" }

// String implements pflag.Value. It omits the address of the webhook.
func (s *Settings) String() string {
	var settings []string
	if s.On {
		settings = append(settings, "on")
	}
	if s.Strategy != "" {
		settings = append(settings, "strategy="+s.Strategy)
	}
	if s.Metrics {
		settings = append(settings, "metrics")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		settings = append(settings, name+"="+s.Annotations[name])
	}
	if s.WebhookURL != "" {
		settings = append(settings, webhook+"...")
	}
	return strings.Join(settings, ",")
}

// Validate returns an error with a line for each problem. Parse checks Annotations, and the user of WebhookURL checks that.
func (s *Settings) Validate() error {
	var problems []error
	fail := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("--"+flag+": "+format, args...))
	}
	for _, name := range s.Unknown {
		fail("%.100q, want any of on, strategy=%s, metrics, a name of an annotation with its key, and last %sURL", name, StrategyVariables, webhook)
	}
	switch {
	case s.Strategy != "" && s.Strategy != StrategyMarker && s.Strategy != StrategyVariables:
		fail("strategy: %q, want %s or %s", s.Strategy, StrategyMarker, StrategyVariables)
	case s.Strategy == StrategyVariables && !s.On:
		fail("strategy: %q, want it with on only", s.Strategy)
	}
	return errors.Join(problems...)
}
