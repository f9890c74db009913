package notify

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// Alert is the sink of Reloader's variables ALERT_*. It posts Reloader's message about each rollout that starts.
type Alert struct {
	// Sink is slack, teams or gchat. For any other value, only the text is posted.
	Sink string
	// URL is the address of the webhook. It is a secret. Required.
	URL string
	// AdditionalInfo is put before the text. It may be empty.
	AdditionalInfo string
	// Proxy is the URL of a proxy for this sink only. Empty means the proxies of the environment.
	Proxy string
}

// alertName is the name of the sink in logs, metrics and on the stream.
const alertName = "alert-on-reload"

// AlertFrom reads Reloader's variables with getenv. It returns nil unless ALERT_ON_RELOAD is "true", and an error if the address or
// the proxy is invalid.
func AlertFrom(getenv func(string) string) (*Alert, error) {
	if getenv("ALERT_ON_RELOAD") != "true" {
		return nil, nil
	}
	read := func(name string) string { return strings.TrimSpace(getenv(name)) }
	a := &Alert{
		Sink: strings.ToLower(read("ALERT_SINK")), URL: read("ALERT_WEBHOOK_URL"),
		AdditionalInfo: read("ALERT_ADDITIONAL_INFO"), Proxy: read("ALERT_WEBHOOK_PROXY"),
	}
	if a.URL == "" {
		return nil, errors.New("ALERT_WEBHOOK_URL: is empty, want the address that ALERT_ON_RELOAD=true posts to")
	}
	if _, err := newAlertSink(a, nil); err != nil {
		return nil, err
	}
	return a, nil
}

// newAlertSink returns the sink of an alert. The transport is as in Options.
func newAlertSink(a *Alert, transport http.RoundTripper) (*sink, error) {
	client := newClient(transport)
	if a.Proxy != "" && transport == nil {
		// The error quotes nothing: the address of a proxy may have a password.
		proxy, err := url.Parse(a.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, errors.New("ALERT_WEBHOOK_PROXY: is not a URL, want one like http://proxy.example.com:3128")
		}
		direct := newTransport()
		direct.Proxy = http.ProxyURL(proxy)
		client = newClient(direct)
	}
	address, err := formats[typeWebhook].address(a.URL)
	if err != nil {
		return nil, fmt.Errorf("ALERT_WEBHOOK_URL: %w", err)
	}
	form, kind := alertForms[a.Sink], a.Sink
	if form == "" {
		kind = "raw"
	}
	s := makeSink(alertName, kind, []events.Verb{events.VerbStarted}, defaultPerMinute, newPoster(address, client))
	if form == "" {
		s.poster.header.Set("Content-Type", "text/plain")
	}
	s.body = func(o events.Outcome) ([]byte, error) {
		switch {
		case len(o.Sources) == 0:
			return nil, errors.New("the outcome names no source")
		case form == "":
			return []byte(strings.ReplaceAll(a.text(o), "*", "")), nil // Asterisks mark bold text in chats.
		}
		return form.around(a.text(o)), nil
	}
	return s, nil
}

// alertForms contains the JSON that Reloader posts to each service, by Reloader's name of the service.
var alertForms = map[string]template{
	"slack": `{"attachments":[{"author_name":"Reloader","color":"good","text":"${text}"}]}`,
	"teams": onlyText,
	"gchat": onlyText,
}

// text returns Reloader's message, with a line for each changed source: Reloader would roll once for each.
func (a *Alert) text(o events.Outcome) string {
	lines := make([]string, 0, len(o.Sources))
	for _, changed := range o.Sources {
		kind, name, _ := strings.Cut(formats["googlechat"].escape.Replace(changed.Source), "/")
		line := fmt.Sprintf("Reloader detected changes in *%s* of type *%s* in namespace *%s*. Hence reloaded *%s* of type *%s* in namespace *%s*",
			name, strings.ToUpper(kind), o.Workload.Namespace,
			o.Workload.Name, cmp.Or(alertTitles[o.Workload.Kind], o.Workload.Kind), o.Workload.Namespace)
		if a.AdditionalInfo != "" {
			line = a.AdditionalInfo + " : " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var alertTitles = map[string]string{
	"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "cronjob": "CronJob", "job": "Job", "rollout": "Rollout",
}
