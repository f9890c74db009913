package notify

import (
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
	// payload returns the value to post, as JSON, for a text. Nil means that the text itself is posted.
	payload func(text string) any
}

var formats = map[string]format{
	typeSlack: {
		schemes: []string{"https"},
		escape:  strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"),
		payload: func(text string) any { return map[string]string{"text": text} },
	},
	// Google Chat and Teams cards have no escapes, so the characters of links are replaced by similar ones.
	typeGoogleChat: {
		schemes: []string{"https"},
		escape:  strings.NewReplacer("<", "‹", ">", "›"),
		payload: func(text string) any { return map[string]string{"text": text} },
	},
	typeTeams: {
		schemes: []string{"https"},
		escape:  strings.NewReplacer("[", "［", "]", "］"),
		payload: card,
	},
	typeWebhook: {schemes: []string{"https", "http"}, escape: strings.NewReplacer()},
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

// body returns the body of the request that posts a rendered text.
func (f format) body(text string) ([]byte, error) {
	if f.payload == nil {
		return []byte(text), nil
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, errors.New("the text is empty")
	}
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText-1]) + "…"
	}
	body, err := json.Marshal(f.payload(text))
	if err != nil {
		return nil, fmt.Errorf("encoding the message: %w", err)
	}
	return body, nil
}

// message returns the body of the request that posts an outcome. An empty template means the default text.
func (f format) message(text template, o events.Outcome) ([]byte, error) {
	n := newNotice(o, f.escape)
	switch chat := f.payload != nil; {
	case chat && text == "":
		return f.body(n.text())
	case chat:
		return f.body(text.render(n, verbatim))
	case text == "":
		body, err := json.Marshal(n)
		if err != nil {
			return nil, fmt.Errorf("encoding the message: %w", err)
		}
		return body, nil
	}
	return []byte(text.render(n, inJSON)), nil
}

// card returns a message with one adaptive card, as the webhook of a Teams workflow accepts it.
func card(text string) any {
	return map[string]any{
		"type": "message",
		"attachments": []any{map[string]any{
			"contentType": "application/vnd.microsoft.card.adaptive",
			"content": map[string]any{
				"$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
				"type":    "AdaptiveCard",
				"version": "1.4",
				"body":    []any{map[string]any{"type": "TextBlock", "text": text, "wrap": true}},
			},
		}},
	}
}
