package tests

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

func TestReloadersAlertsArePostedWhenARolloutStarts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sink        string
		contentType string
		// body has $ for the text.
		body string
		// plain says that the text has no asterisks.
		plain bool
	}{
		{"slack", "application/json", `{"attachments":[{"author_name":"Reloader","color":"good","text":"$"}]}`, false},
		{"teams", "application/json", `{"text":"$"}`, false},
		{"gchat", "application/json", `{"text":"$"}`, false},
		{"raw", "text/plain", "$", true},
	} {
		t.Run(tt.sink, func(t *testing.T) {
			t.Parallel()
			box := newMailbox(t, http.StatusOK)
			r := newRig(t, programs.Options{
				ActuatorArgs: []string{"--settle", "50ms", "--reloader"},
				Env: []string{
					"ALERT_ON_RELOAD=true", "ALERT_SINK=" + tt.sink, "ALERT_WEBHOOK_URL=" + box.URL + "/password-of-the-hook", "ALERT_ADDITIONAL_INFO=west",
				},
			})
			r.secret("db", map[string]string{"password": "one"})
			r.deploy(r.reading("web", "db", 1, nil))
			r.start()
			r.secret("db", map[string]string{"password": "two"})
			r.outcomeOf("web", events.VerbCompleted)
			r.eventually("the alert is posted", func(context.Context) bool { return len(box.received()) > 0 })
			text := "west : Reloader detected changes in *db* of type *SECRET* in namespace *" + r.namespace + "*. " +
				"Hence reloaded *web* of type *Deployment* in namespace *" + r.namespace + "*"
			if tt.plain {
				text = strings.ReplaceAll(text, "*", "")
			}
			want := []post{{"/password-of-the-hook", tt.contentType, strings.ReplaceAll(tt.body, "$", text)}}
			if diff := cmp.Diff(want, box.received()); diff != "" {
				t.Errorf("posts (-want +got):\n%s", diff)
			}
			if strings.Contains(r.actuator.Output(), "password-of-the-hook") {
				t.Error("the address is in the log")
			}
		})
	}
}
