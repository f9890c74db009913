package notify

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// config is the file of --notify-config.
type config struct {
	Sinks []sinkConfig `json:"sinks"`
}

// sinkConfig configures one sink. Fields with a default may be omitted.
type sinkConfig struct {
	// Name identifies the sink in logs, metrics and on the stream. A DNS label. Required.
	Name string `json:"name"`
	// Type is one of the keys of formats. Required.
	Type string `json:"type"`
	// Format is formatCloudEvents, or empty. Only for webhooks without a template.
	Format string `json:"format"`
	// URL is the address that messages are posted to, URLFile a file that contains it. Exactly one of them is required.
	URL     string `json:"url"`
	URLFile string `json:"urlFile"`
	// Verbs selects outcomes. Default: failed and held.
	Verbs []events.Verb `json:"verbs"`
	// HeldReasons selects held outcomes by their reason. Default: those that are true in heldReasons.
	HeldReasons []string `json:"heldReasons"`
	// Namespaces selects outcomes by the namespace of their workload. Default: all.
	Namespaces []string `json:"namespaces"`
	// Template is the text of a chat message, or the body of a webhook. Default: notice.text, or the notice as JSON.
	Template string `json:"template"`
	// Headers are added to the request. Only for webhooks.
	Headers []headerConfig `json:"headers"`
	Rate    rateConfig     `json:"rate"`
}

// headerConfig configures one header. Exactly one of Value and File is required.
type headerConfig struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	File  string `json:"file"`
}

type rateConfig struct {
	// PerMinute limits the messages per minute, from 1 to 6000. Zero means 60. Messages over the limit wait.
	PerMinute int `json:"perMinute"`
}

const (
	defaultPerMinute = 60
	maxPerMinute     = 6000
)

var outcomeVerbs = []events.Verb{events.VerbStarted, events.VerbCompleted, events.VerbFailed, events.VerbHeld, events.VerbSkipped}

// heldReasons are the reasons of held outcomes, and whether a sink reports them by default: those that also have a Kubernetes Event. A routine
// rotation causes thousands of the others, one for each workload that waits for a slot, and a failure would wait behind them.
var heldReasons = map[string]bool{
	"peer-failed": true, "canary-first": true, "lower-wave": true, "on-hold": true, "window-closed": true, "rolled-too-often": true,
	"rollout-aborted": true,

	"limit-reached": false, "rolled-recently": false, "pause-period": false, "files-pending": false,
	"kind-not-served": false,
}

// parseConfig parses and checks a configuration. The error has a line for each problem and quotes no value that could be secret. It does not read
// the files that the configuration names.
func parseConfig(content []byte) ([]sinkConfig, error) {
	var c config
	if err := kube.DecodeStrict(content, &c); err != nil {
		return nil, fmt.Errorf("--notify-config: %w", err)
	}
	if len(c.Sinks) == 0 {
		return nil, errors.New("--notify-config: sinks: is empty, want at least one")
	}
	var all []error
	names := map[string]bool{}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		p := &problems{}
		s.check(p)
		if names[s.Name] {
			p.add("name: %q is used twice, want a name for each sink", s.Name)
		}
		names[s.Name] = true
		for _, problem := range p.list {
			all = append(all, fmt.Errorf("--notify-config: sinks[%d].%s", i, problem))
		}
	}
	return c.Sinks, errors.Join(all...)
}

type problems struct{ list []string }

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// check sets the defaults and checks the fields.
func (s *sinkConfig) check(p *problems) {
	if len(s.Verbs) == 0 {
		s.Verbs = []events.Verb{events.VerbFailed, events.VerbHeld}
	}
	if s.Rate.PerMinute == 0 {
		s.Rate.PerMinute = defaultPerMinute
	}
	if len(validation.IsDNS1123Label(s.Name)) > 0 {
		p.add("name: %q is not a DNS label, want lower-case letters, digits and dashes, at most 63", s.Name)
	}
	s.checkAddress(p)
	for i, verb := range s.Verbs {
		if !slices.Contains(outcomeVerbs, verb) {
			p.add("verbs[%d]: %q is not known, want one of %s", i, verb, list(outcomeVerbs))
		}
	}
	for i, namespace := range s.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			p.add("namespaces[%d]: %q is not the name of a namespace, want lower-case letters, digits and dashes, at most 63", i, namespace)
		}
	}
	if s.Rate.PerMinute < 1 || s.Rate.PerMinute > maxPerMinute {
		p.add("rate.perMinute: is %d, want from 1 to %d, or 0 for %d", s.Rate.PerMinute, maxPerMinute, defaultPerMinute)
	}
	if unknown, found := template(s.Template).unknown(); found {
		p.add("template: has ${%.100s}, want one of %s", unknown, list(slices.Sorted(maps.Keys(notice{}.values()))))
	}
	switch {
	case s.Format == "":
	case s.Format != formatCloudEvents:
		p.add("format: %q is not known, want %s or none", s.Format, formatCloudEvents)
	case s.Type != typeWebhook:
		p.add("format: is for the type %s, want none with %q", typeWebhook, s.Type)
	case s.Template != "":
		p.add("format: is set together with template, want one of them")
	}
	if len(s.HeldReasons) > 0 && !slices.Contains(s.Verbs, events.VerbHeld) {
		p.add("heldReasons: are for the verb %s, which verbs does not have", events.VerbHeld)
	}
	for i, reason := range s.HeldReasons {
		if _, known := heldReasons[reason]; !known {
			p.add("heldReasons[%d]: %q is not known, want one of %s", i, reason, list(slices.Sorted(maps.Keys(heldReasons))))
		}
	}
	s.checkHeaders(p)
}

func (s *sinkConfig) checkAddress(p *problems) {
	format, known := formats[s.Type]
	if !known {
		p.add("type: %q is not known, want one of %s", s.Type, list(slices.Sorted(maps.Keys(formats))))
	}
	switch {
	case s.URL == "" && s.URLFile == "":
		p.add("url: is empty, want the address of the webhook, or urlFile")
	case s.URL != "" && s.URLFile != "":
		p.add("url: is set together with urlFile, want one of them")
	case s.URL != "" && known:
		if _, err := format.address(s.URL); err != nil {
			p.add("url: %s", err)
		}
	}
}

func (s *sinkConfig) checkHeaders(p *problems) {
	if len(s.Headers) > 0 && s.Type != typeWebhook {
		p.add("headers: are for the type %s, want none with %q", typeWebhook, s.Type)
	}
	for i, header := range s.Headers {
		if !headerName.MatchString(header.Name) {
			p.add("headers[%d].name: %q is not the name of a header, want letters, digits and dashes", i, header.Name)
		}
		if (header.Value == "") == (header.File == "") {
			p.add("headers[%d]: wants exactly one of value and file", i)
		}
		if !isHeaderValue(header.Value) {
			p.add("headers[%d].value: has a control character, want one line of text", i)
		}
	}
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

func isHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// list lists valid values for an error.
func list[T ~string](values []T) string {
	var texts []string
	for _, value := range values {
		texts = append(texts, string(value))
	}
	return strings.Join(texts, ", ")
}

// readSecret reads a file with one line. No error quotes its content.
func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the file: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
