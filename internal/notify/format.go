package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// The types of sinks, as the file calls them.
const (
	typeSlack      = "slack"
	typeTeams      = "teams"
	typeGoogleChat = "googlechat"
	typeWebhook    = "webhook"
)

// format is how a type of sink wants its messages.
type format struct {
	// schemes are those that an address may have. What goes to a chat service is never sent in the clear.
	schemes []string
	// escape keeps what is in a value from being read as a link or a mention. A template may make both.
	escape *strings.Replacer
	// payload is what is posted of a text, as JSON. Nil means that the text is posted as it is.
	payload func(text string) any
}

var formats = map[string]format{
	typeSlack: {
		schemes: []string{"https"},
		escape:  strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"),
		payload: func(text string) any { return map[string]string{"text": text} },
	},
	// Neither Google Chat nor the cards of Teams have a way to escape, so that what begins a link is replaced by its like.
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

// address reads where messages are posted. No error quotes it.
func (f format) address(text string) (*url.URL, error) {
	want := strings.Join(f.schemes, ":// or ") + "://"
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		// The parser's own error quotes the text.
		return nil, fmt.Errorf("is not an address, want one that begins with %s", want)
	}
	if !slices.Contains(f.schemes, u.Scheme) {
		return nil, fmt.Errorf("has another scheme, want %s", want)
	}
	return u, nil
}

// maxText is how many characters of a text a chat service gets. All of the services take as many.
const maxText = 3000

// body is what is posted of a rendered text.
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
		return nil, fmt.Errorf("writing the message: %w", err)
	}
	return body, nil
}

// card is a message with one adaptive card, which is what the webhook of a workflow of Teams takes.
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
