package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// made returns the body that a sink of a type posts for an outcome.
func made(t *testing.T, kind, template string, o events.Outcome) string {
	t.Helper()
	s, err := newSink(sinkConfig{Name: "a", Type: kind, URL: "https://x.example/y", Template: template, Rate: rateConfig{PerMinute: 1}}, nil)
	testkit.Must(t, err)
	body, err := s.body(o)
	testkit.Must(t, err)
	return string(body)
}

func TestEachServiceGetsItsFormat(t *testing.T) {
	const text = "Rollout failed: deployment/web in namespace shop of cluster prod-eu, it did not become ready in time (deadline-exceeded). " +
		"Trace 4bf92f3577b34da6a3ce929d0e0e4736. Changed: secret/db, configmap/app."
	tests := []struct{ kind, want string }{
		{"slack", `{"text":"` + text + `"}`},
		{"googlechat", `{"text": "` + text + `"}` + "\n"},
		{"teams", strings.Replace(teams, "${text}", text, 1)},
		{"webhook", `{"id":"aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22/r1/failed","time":"2026-03-14T15:09:26Z","cluster":"prod-eu",` +
			`"what":"Rollout","verb":"failed","kind":"deployment","namespace":"shop","name":"web","reason":"deadline-exceeded",` +
			`"message":"it did not become ready in time","revision":"r1","sources":["secret/db","configmap/app"],` +
			`"traceId":"4bf92f3577b34da6a3ce929d0e0e4736"}`},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			testkit.WantEqual(t, "body", tt.want, made(t, tt.kind, "", outcome(events.VerbFailed, "shop", "r1")))
		})
	}
	if len(tests) != len(formats) {
		t.Errorf("%d of %d types are tested", len(tests), len(formats))
	}
}

func TestAWebhookCanGetTheCloudEvent(t *testing.T) {
	s, err := newSink(sinkConfig{Name: "a", Type: typeWebhook, Format: formatCloudEvents, URL: "https://x.example/y", Rate: rateConfig{PerMinute: 1}}, nil)
	testkit.Must(t, err)
	body, err := s.body(outcome(events.VerbFailed, "shop", "r1"))
	testkit.Must(t, err)
	want := `{"specversion":"1.0","id":"aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22/r1/failed","source":"k8s://prod-eu/actuator",` +
		`"type":"dev.keyturn.rollout.failed.v1","subject":"/apis/apps/v1/namespaces/shop/deployments/web",` +
		`"datacontenttype":"application/json","time":"2026-03-14T15:09:26Z","data":{"workload":{"kind":"deployment",` +
		`"namespace":"shop","name":"web","uid":"aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22"},"revision":"r1",` +
		`"reason":"deadline-exceeded","message":"it did not become ready in time","sources":[{"source":"secret/db"},` +
		`{"source":"configmap/app"}]},"causationid":"uid/r1","clustername":"prod-eu","kind":"rollout","name":"web",` +
		`"namespace":"shop","partitionkey":"prod-eu/aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22","resourceversion":"4720",` +
		`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01","workloadkind":"deployment"}`
	testkit.WantEqual(t, "event", want, string(body))
	if contentType := s.poster.header.Get("Content-Type"); contentType != "application/cloudevents+json" {
		t.Errorf("the content type is %s", contentType)
	}
}

func TestWhatIsInAnOutcomeMakesNoLinkAndATemplateDoes(t *testing.T) {
	o := outcome(events.VerbFailed, "shop", "r1")
	o.Message = "see <!channel> & [this](https://evil.example)"
	const template = "<https://x.example/${traceId}|trace> ${message}"
	for _, tt := range []struct{ kind, want string }{
		{"slack", "<https://x.example/4bf92f3577b34da6a3ce929d0e0e4736|trace> see &lt;!channel&gt; &amp; [this](https://evil.example)"},
		{"googlechat", "<https://x.example/4bf92f3577b34da6a3ce929d0e0e4736|trace> see ‹!channel› & [this](https://evil.example)"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			var got struct{ Text string }
			testkit.Must(t, json.Unmarshal([]byte(made(t, tt.kind, template, o)), &got))
			testkit.WantEqual(t, "text", tt.want, got.Text)
		})
	}
	if got := made(t, "teams", "", o); !strings.Contains(got, "［this］(https://evil.example)") {
		t.Errorf("a card has a link that its template did not make: %s", got)
	}
	if got, want := made(t, "webhook", `{"m":"${message}"}`, o), `{"m":"see \u003c!channel\u003e \u0026 [this](https://evil.example)"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestATextThatIsTooLongIsCut(t *testing.T) {
	o := outcome(events.VerbFailed, "shop", "r1")
	o.Message = strings.Repeat("ü", 2*maxText)
	var got struct{ Text string }
	testkit.Must(t, json.Unmarshal([]byte(made(t, "slack", "", o)), &got))
	if runes := []rune(got.Text); len(runes) != maxText || runes[maxText-1] != '…' || runes[maxText-2] != 'ü' {
		t.Errorf("got %d characters", len(runes))
	}
}
