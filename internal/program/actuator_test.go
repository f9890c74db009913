package program

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/notify"
)

func TestAWebhookIsCalledInsteadOfAllElse(t *testing.T) {
	const rolls, appears = "nothing is rolled", "it is called only when content changes"
	for _, tt := range []struct {
		name string
		set  func(*Actuator)
		want string
	}{
		{"a webhook alone", func(*Actuator) {}, ""},
		{"a dry run", func(a *Actuator) { a.Actuate.DryRun = true }, rolls},
		{"everything that is created", func(a *Actuator) { a.Actuate.RollOnCreate = "always" }, appears},
		{"what is deleted", func(a *Actuator) { a.Actuate.RollOnDelete = true }, appears},
		{"an address that is none", func(a *Actuator) { a.Call.URL = "example" }, "--reloader: webhook-url: "},
		{"everything, and no webhook", func(a *Actuator) {
			a.Call.URL, a.Actuate.DryRun, a.Actuate.RollOnCreate, a.Actuate.RollOnDelete = "", true, "always", true
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := &Actuator{Call: notify.CallOptions{URL: "https://example.com/hook"}}
			tt.set(a)
			err := a.validateCall()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheActuatorRefusesTheTokenOfASecretStore(t *testing.T) {
	environment := map[string]string{"BAO_ADDR": "https://bao:8200", "VAULT_TOKEN": "hvs.5d1f0c"}
	lookup := func(name string) (string, bool) { value, set := environment[name]; return value, set }
	err := refuseTokens(lookup)
	if err == nil || !strings.HasPrefix(err.Error(), "VAULT_TOKEN is set, but the actuator") || strings.Contains(err.Error(), "hvs.") {
		t.Errorf("got %v, want an error that names the variable and not its value", err)
	}
	delete(environment, "VAULT_TOKEN")
	if err := refuseTokens(lookup); err != nil {
		t.Errorf("without a token: got %v", err)
	}
}
