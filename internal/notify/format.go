package notify

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// The types of sinks in the configuration.
const (
	typeSlack      = "slack"
	typeTeams      = "teams"
	typeGoogleChat = "googlechat"
	typeWebhook    = "webhook"
)

// format is the message format of a type of sink.
type format struct {
	// schemes are the valid schemes of an address. Messages to chat services are always encrypted.
	schemes []string
	// escape keeps the service from rendering a value as a link or a mention. Templates may contain both.
	escape *strings.Replacer
	// chat is the JSON to post to a chat service, with ${text} for the text. Empty means that the service is none.
	chat template
}

// onlyText is what Slack, Google Chat and others accept.
const onlyText template = `{"text":"${text}"}`

// teams has one adaptive card, as the webhook of a Teams workflow accepts it.
//
//go:embed teams.json
var teams string

var formats = map[string]format{
	typeSlack: {schemes: []string{"https"}, escape: strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"), chat: onlyText},
	// Google Chat and Teams cards have no escapes, so the characters of links are replaced by similar ones.
	typeGoogleChat: {schemes: []string{"https"}, escape: strings.NewReplacer("<", "‹", ">", "›"), chat: onlyText},
	typeTeams:      {schemes: []string{"https"}, escape: strings.NewReplacer("[", "［", "]", "］"), chat: template(teams)},
	typeWebhook:    {schemes: []string{"https", "http"}, escape: strings.NewReplacer()},
}

func types() []string { return slices.Sorted(maps.Keys(formats)) }

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
	case f.chat != "":
		return f.body(cmp.Or(text, "${text}").render(n, verbatim))
	case text == "":
		return json.Marshal(n)
	}
	return []byte(text.render(n, inJSON)), nil
}

// body returns the body of the request that posts a text to a chat service.
func (f format) body(text string) ([]byte, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, errors.New("the text is empty")
	}
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText-1]) + "…"
	}
	return f.chat.around(text), nil
}
