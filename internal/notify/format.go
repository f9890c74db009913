package notify

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// typeSlack and typeWebhook are types of sinks in the configuration. The other chat services differ only in their row of formats.
	typeSlack   = "slack"
	typeWebhook = "webhook"
	// formatCloudEvents is the format of a webhook that gets the CloudEvent of the outcome in structured mode.
	formatCloudEvents = "cloudevents"
)

// onlyText is the message that Slack and others accept.
const onlyText template = `{"text":"${text}"}`

type format struct {
	// schemes are the valid schemes of an address. Messages to chat services are always encrypted.
	schemes []string
	// escape keeps the service from rendering a value as a link or a mention. Templates may contain both.
	escape *strings.Replacer
	// chat is the JSON to post to a chat service, with ${text} for the text. Empty means a webhook.
	chat template
}

var (
	//go:embed teams.json
	teams string
	//go:embed googlechat.json
	googleChat string
)

var formats = map[string]format{
	typeSlack: {schemes: []string{"https"}, escape: strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"), chat: onlyText},
	// Google Chat and Teams cards have no escapes, so the characters of links are replaced by similar ones.
	"googlechat": {schemes: []string{"https"}, escape: strings.NewReplacer("<", "‹", ">", "›"), chat: template(googleChat)},
	"teams":      {schemes: []string{"https"}, escape: strings.NewReplacer("[", "［", "]", "］"), chat: template(teams)},
	typeWebhook:  {schemes: []string{"https", "http"}, escape: strings.NewReplacer()},
}

// address parses an address. No error quotes it.
func (f format) address(text string) (*url.URL, error) {
	want := strings.Join(f.schemes, ":// or ") + "://"
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		// url.Error quotes the text.
		return nil, fmt.Errorf("is not a URL, want one that begins with %s", want)
	}
	if !slices.Contains(f.schemes, u.Scheme) {
		return nil, fmt.Errorf("has another scheme, want %s", want)
	}
	return u, nil
}

// maxText is the maximum number of characters in a chat message. All of the services accept that many.
const maxText = 3000

// message returns the body of the request that posts an outcome. An empty template means the default text, or the notice as JSON.
func (f format) message(text template, o events.Outcome) ([]byte, error) {
	n := newNotice(o, f.escape)
	switch {
	case f.chat == "" && text == "":
		return json.Marshal(n)
	case f.chat == "":
		return []byte(text.render(n, inJSON)), nil
	}
	said := strings.TrimSpace(cmp.Or(text, "${text}").render(n, verbatim))
	if said == "" {
		return nil, errors.New("the text is empty")
	}
	if runes := []rune(said); len(runes) > maxText {
		said = string(runes[:maxText-1]) + "…"
	}
	return f.chat.around(said), nil
}

func cloudEvent(o events.Outcome) ([]byte, error) {
	encoded, err := o.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(encoded.Event())
}

// template is a text in which ${name} stands for a value of a notice. It does not use text/template, which calls methods by name: the linker would
// keep every exported method of every type, and the actuator would grow by half, on disk and in memory.
type template string

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// unknown returns the first placeholder that names no value, if there is one.
func (t template) unknown() (name string, found bool) {
	values := notice{}.values()
	for _, match := range placeholder.FindAllStringSubmatch(string(t), -1) {
		if _, ok := values[match[1]]; !ok {
			return match[1], true
		}
	}
	return "", false
}

// render replaces the placeholders by the values of the notice, each quoted for the text around it.
func (t template) render(n notice, quote func(string) string) string {
	values := n.values()
	return placeholder.ReplaceAllStringFunc(string(t), func(found string) string {
		return quote(values[found[2:len(found)-1]])
	})
}

// around returns the JSON of a template with a text in place of ${text}.
func (t template) around(text string) []byte {
	return []byte(strings.ReplaceAll(string(t), "${text}", inJSON(text)))
}

// verbatim does not quote the value. It is for plain text.
func verbatim(value string) string { return value }

// inJSON quotes the value for the inside of a JSON string.
func inJSON(value string) string {
	quoted, _ := json.Marshal(value) // A string can always be encoded.
	return string(quoted[1 : len(quoted)-1])
}
