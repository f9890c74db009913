package notify

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/configfile"
	"github.com/keyturn/keyturn/internal/events"
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
	// URL is the address that messages are posted to, URLFile a file that contains it. Exactly one of them is required.
	URL     string `json:"url"`
	URLFile string `json:"urlFile"`
	// Verbs selects outcomes. Default: failed and held.
	Verbs []events.Verb `json:"verbs"`
	// HeldReasons selects outcomes held by their reason. Default: those that heldReasons says.
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

// outcomeVerbs are the verbs that a sink can select.
var outcomeVerbs = []events.Verb{events.VerbStarted, events.VerbCompleted, events.VerbFailed, events.VerbHeld, events.VerbSkipped}

// parseConfig parses and checks a configuration. The error has a line for each problem and quotes no value that could be
// secret. It does not read the files that the configuration names.
func parseConfig(content []byte) ([]sinkConfig, error) {
	var c config
	if err := configfile.Decode(content, &c); err != nil {
		return nil, fmt.Errorf("--notify-config: %w", err)
	}
	if len(c.Sinks) == 0 {
		return nil, errors.New("--notify-config: sinks: is empty, want at least one")
	}
	var problems []error
	names := map[string]bool{}
	for i := range c.Sinks {
		s := &c.Sinks[i]
		at := "--notify-config: sinks[" + strconv.Itoa(i) + "]"
		for _, problem := range s.resolve() {
			problems = append(problems, fmt.Errorf("%s.%w", at, problem))
		}
		if names[s.Name] {
			problems = append(problems, fmt.Errorf("%s.name: %q is used twice, want a name for each sink", at, s.Name))
		}
		names[s.Name] = true
	}
	return c.Sinks, errors.Join(problems...)
}

// resolve checks the fields and sets the defaults.
func (s *sinkConfig) resolve() []error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(validation.IsDNS1123Label(s.Name)) > 0 {
		refuse("name: %q is not a DNS label, want lower-case letters, digits and dashes, at most 63", s.Name)
	}
	kind, known := formats[s.Type]
	if !known {
		refuse("type: %q is not known, want one of %s", s.Type, strings.Join(types(), ", "))
	}
	switch {
	case s.URL == "" && s.URLFile == "":
		refuse("url: is empty, want the address of the webhook, or urlFile")
	case s.URL != "" && s.URLFile != "":
		refuse("url: is set together with urlFile, want one of them")
	case s.URL != "" && known:
		if _, err := kind.address(s.URL); err != nil {
			refuse("url: %w", err)
		}
	}
	if len(s.Verbs) == 0 {
		s.Verbs = []events.Verb{events.VerbFailed, events.VerbHeld}
	}
	for i, verb := range s.Verbs {
		if !slices.Contains(outcomeVerbs, verb) {
			refuse("verbs[%d]: %q is not known, want one of %s", i, verb, joinVerbs(outcomeVerbs))
		}
	}
	for i, namespace := range s.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			refuse("namespaces[%d]: %q is not the name of a namespace, want lower-case letters, digits and dashes, at most 63", i, namespace)
		}
	}
	if s.Rate.PerMinute == 0 {
		s.Rate.PerMinute = defaultPerMinute
	}
	if s.Rate.PerMinute < 1 || s.Rate.PerMinute > maxPerMinute {
		refuse("rate.perMinute: is %d, want from 1 to %d, or 0 for %d", s.Rate.PerMinute, maxPerMinute, defaultPerMinute)
	}
	if _, err := newTemplate(s.Template); err != nil {
		refuse("template: %w", err)
	}
	return slices.Concat(problems, s.checkHeldReasons(), s.checkHeaders())
}

// checkHeaders checks the further headers.
func (s *sinkConfig) checkHeaders() []error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(s.Headers) > 0 && s.Type != typeWebhook {
		refuse("headers: are for the type %s, want none with %q", typeWebhook, s.Type)
	}
	for i, header := range s.Headers {
		at := "headers[" + strconv.Itoa(i) + "]"
		if !headerName.MatchString(header.Name) {
			refuse("%s.name: %q is not the name of a header, want letters, digits and dashes", at, header.Name)
		}
		if (header.Value == "") == (header.File == "") {
			refuse("%s: wants exactly one of value and file", at)
		}
		if !isHeaderValue(header.Value) {
			refuse("%s.value: has a control character, want one line of text", at)
		}
	}
	return problems
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// isHeaderValue reports whether a header can hold the text.
func isHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func joinVerbs(verbs []events.Verb) string {
	names := make([]string, len(verbs))
	for i, verb := range verbs {
		names[i] = string(verb)
	}
	return strings.Join(names, ", ")
}

// readSecret reads a file with one line. No error quotes its content.
func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the file: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
