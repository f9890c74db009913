package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

// configured returns a plugin and its command of a command line, after its flags were set. The context has the namespace shop.
func configured(t *testing.T, client kubernetes.Interface, words ...string) (*Plugin, *cobra.Command) {
	t.Helper()
	p := New("test")
	t.Cleanup(p.close)
	cmd, args, err := p.Command().Find(words)
	if err != nil {
		t.Fatal(err)
	}
	p.access.typed, p.access.namespace = client, "shop"
	if err := errors.Join(cmd.ParseFlags(args), p.configure(t.Context(), cmd.Flags())); err != nil {
		t.Fatal(err)
	}
	return p, cmd
}

func TestFlagsDefaultToTheSettingsOfTheInstallation(t *testing.T) {
	actuator := actuatorIn("keyturn-system")
	client := fake.NewClientset(actuator, configMap("keyturn-store-access", map[string]string{"grants.yaml": "grants: []"}), configMap("keyturn", map[string]string{
		"KEYTURN_CLUSTER": "prod", "KEYTURN_STORES_FROM": "hub", "KEYTURN_STORE_ACCESS": "/etc/keyturn-store-access/grants.yaml", "KEYTURN_MIN_INTERVAL": "5m",
	}))
	for _, tt := range []struct {
		name string
		args []string
		want map[string]string
	}{
		{"none is given", []string{"explain"}, map[string]string{
			"cluster": "prod", "stores-from": "[hub]", "roll-all": "true", "min-interval": "5m0s", "window": "prod-window", "namespace": "shop", "nats-creds": "",
		}},
		{"some are given", []string{"explain", "-n", "web", "--cluster", "test", "--roll-all=false", "--min-interval", "1m"}, map[string]string{
			"cluster": "test", "stores-from": "[hub]", "roll-all": "false", "min-interval": "1m0s", "window": "prod-window", "namespace": "web", "nats-creds": "",
		}},
		{"the status, which is of all namespaces", []string{"status"}, map[string]string{"cluster": "prod", "namespace": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, cmd := configured(t, client, tt.args...)
			got := map[string]string{}
			for name := range tt.want {
				got[name] = cmd.Flags().Lookup(name).Value.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			access := cmd.Flags().Lookup("store-access")
			if access == nil {
				return
			}
			if content, err := os.ReadFile(access.Value.String()); err != nil || string(content) != "grants: []" {
				t.Errorf("--store-access is %s, with %q (%v)", access.Value, content, err)
			}
			p.close()
			if _, err := os.Stat(filepath.Dir(access.Value.String())); !os.IsNotExist(err) {
				t.Errorf("its folder stays: %v", err)
			}
		})
	}
}

func TestTheSettingsOfTheActuatorAreAskedForThoughNATSIsGiven(t *testing.T) {
	for _, tt := range []struct {
		name    string
		client  *fake.Clientset
		command string
		// asks says that it asks the API server, unknown is why the settings are not known then, and rollAll is the setting of that name.
		asks             bool
		unknown, rollAll string
		// rolls says that any custom resource counts as a kind that the actuator rolls.
		rolls bool
	}{
		{"by explain, of an installation", fake.NewClientset(actuatorIn("keyturn-system")), "explain", true, "<nil>", "true", false},
		{"by explain, where there is none", fake.NewClientset(), "explain", true, "no installation found", "false", true},
		{"not by history", fake.NewClientset(), "history", false, "<nil>", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, cmd := configured(t, tt.client, tt.command, "--cluster", "prod", "--nats-url", "nats://127.0.0.1:1")
			if asked := len(tt.client.Actions()) > 0; asked != tt.asks {
				t.Errorf("it asks the API server: %t, want %t", asked, tt.asks)
			}
			if said := fmt.Sprint(p.unsettled); !strings.Contains(said, tt.unknown) {
				t.Errorf("the settings are not known because of %s, want %s", said, tt.unknown)
			}
			if !tt.asks {
				return
			}
			if got := cmd.Flag("roll-all").Value.String(); got != tt.rollAll {
				t.Errorf("--roll-all=%s, want %s", got, tt.rollAll)
			}
			a := &annotator{namespace: "shop", plugin: p, cmd: cmd, prepared: true}
			if err := a.checkRolled(t.Context(), &object{kind: "prometheus", group: "monitoring.coreos.com"}, ""); (err == nil) != tt.rolls {
				t.Errorf("a custom resource may be rolled: %v, want %t", err, tt.rolls)
			}
		})
	}
}

func TestAnExternalNATSIsNamedWithoutItsCredentials(t *testing.T) {
	for _, tt := range []struct{ name, url, want string }{
		{"with a password", "tls://keyturn:hunter2@nats.example.com:4222", "uses the NATS at tls://nats.example.com:4222, not an embedded one"},
		{"with a token, of several servers", "nats://t0ken@a:4222,nats://t0ken@b:4222", "uses the NATS at nats://a:4222,nats://b:4222, not an embedded one"},
		{"from a Secret, which is not read", "", "uses a NATS of its own, not an embedded one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New("test")
			p.installed = &installation{namespace: "keyturn-system", settings: map[string]string{"KEYTURN_NATS_URL": tt.url}}
			_, err := p.streams(t.Context())
			wantErrorWith(t, err, tt.want)
		})
	}
}

func TestExamplesAreThoseOfThePlugin(t *testing.T) {
	root := New("test").Command()
	for _, cmd := range root.Commands() {
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  kubectl keyturn ") {
				t.Errorf("%s has the example %s", cmd.CommandPath(), line)
			}
		}
	}
}
