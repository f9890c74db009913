package program

import (
	"strings"
	"testing"
)

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
