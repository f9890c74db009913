package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/tests/testkit"
)

// prepared returns a plugin after its command has read the settings of the installation, and what it has said about them.
func prepared(t *testing.T, client kubernetes.Interface, set func(*Plugin)) (*Plugin, string) {
	t.Helper()
	p := New("test")
	t.Cleanup(p.Close)
	p.access.typed = client
	set(p)
	var said strings.Builder
	testkit.Must(t, p.settle(t.Context(), &said))
	return p, said.String()
}

func TestSettingsAreThoseOfTheInstallation(t *testing.T) {
	client := fake.NewClientset(
		actuatorIn("keyturn-system"), configMap("keyturn-store-access", map[string]string{"grants.yaml": "grants: []"}), configMap("keyturn", map[string]string{
			"KEYTURN_CLUSTER": "prod", "KEYTURN_STORES_FROM": "hub", "KEYTURN_STORE_ACCESS": "/etc/keyturn-store-access/grants.yaml",
			"KEYTURN_MIN_INTERVAL": "5m", "KEYTURN_TRACE_URL": "https://traces.example.com/{traceID}",
			"KEYTURN_RELOADER": "on,webhook-url=https://example.com/a,b",
		}))
	p, said := prepared(t, client, func(*Plugin) {})
	got := []any{p.cluster, p.traceURL, p.settings.StoresFrom, p.settings.RollAll, p.settings.MinInterval, p.settings.Window, p.nats.CredsFile, p.settings.Reloader.WebhookURL, said}
	want := []any{"prod", "https://traces.example.com/{traceID}", []string{"hub"}, true, 5 * time.Minute, "prod-window", "", "https://example.com/a,b", ""}
	testkit.WantEqual(t, "settings", want, got)
	if content, err := os.ReadFile(p.settings.StoreAccess); err != nil || string(content) != "grants: []" {
		t.Errorf("the grants are %s, with %q (%v)", p.settings.StoreAccess, content, err)
	}
	p.Close()
	if _, err := os.Stat(filepath.Dir(p.settings.StoreAccess)); !os.IsNotExist(err) {
		t.Errorf("their folder stays: %v", err)
	}
	p, _ = prepared(t, client, func(p *Plugin) { p.cluster, p.traceURL = "test", "https://mine/{traceID}" })
	if p.cluster != "test" || p.traceURL != "https://mine/{traceID}" {
		t.Errorf("what the flags say is replaced: %s, %s", p.cluster, p.traceURL)
	}
}

func TestTheNamespaceIsThatOfTheContextUnlessACommandIsOfAll(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: shop\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
		"users: [{name: a}]\ncontexts: [{name: shop, context: {cluster: a, user: a, namespace: shop}}]\n"
	testkit.Must(t, os.WriteFile(config, []byte(content), 0o600))
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"of explain", []string{"explain"}, "shop"},
		{"of explain, which names another", []string{"explain", "-n", "web"}, "web"},
		{"of history", []string{"history"}, "shop"},
		{"of history in all namespaces", []string{"history", "-A"}, ""},
		{"of status", []string{"status"}, ""},
		{"of compare", []string{"compare"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New("test")
			cmd, args, err := p.Command().Find(tt.args)
			if err == nil {
				err = errors.Join(cmd.ParseFlags(append(args, "--kubeconfig", config)), p.open(cmd.Flags()))
			}
			testkit.Must(t, err)
			testkit.WantEqual(t, "namespace", tt.want, cmd.Flag("namespace").Value.String())
		})
	}
}

func TestSettingsOfTheActuatorAreLookedForThoughNATSIsGiven(t *testing.T) {
	lost := actuatorIn("keyturn-system")
	lost.Spec.Template.Spec.Containers[1].Args = append(lost.Spec.Template.Spec.Containers[1].Args, "--store-access=/var/run/secrets/keyturn/reader/grants.yaml")
	for _, tt := range []struct {
		name    string
		client  *fake.Clientset
		said    string
		rollAll bool
		// rolls says that any custom resource counts as a kind that the actuator rolls.
		rolls bool
	}{
		{"in an installation", fake.NewClientset(actuatorIn("keyturn-system")), "", true, false},
		{"where there is none", fake.NewClientset(), "no installation found", false, true},
		{"in one with a file that cannot be copied", fake.NewClientset(lost), "comes from no ConfigMap", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, said := prepared(t, tt.client, func(p *Plugin) { p.cluster, p.nats.URL = "prod", "nats://127.0.0.1:1" })
			if !strings.Contains(said, tt.said) || (said == "") != (tt.said == "") {
				t.Errorf("it says %q, want %q", said, tt.said)
			}
			if p.settings.RollAll != tt.rollAll || p.settings.StoreAccess != "" {
				t.Errorf("settings: roll all %t, grants %q; want %t and none", p.settings.RollAll, p.settings.StoreAccess, tt.rollAll)
			}
			a := &annotator{namespace: "shop", plugin: p, prepared: true}
			if err := a.checkRolled(t.Context(), &object{kind: "prometheus", group: "monitoring.coreos.com"}, ""); (err == nil) != tt.rolls {
				t.Errorf("a custom resource may be rolled: %v, want %t", err, tt.rolls)
			}
		})
	}
}

func TestExplainRefusesAPolicyThatItDoesNotKnow(t *testing.T) {
	p := New("test")
	p.settings.RollOnCreate = "sometimes"
	_, err := p.explain(t.Context(), "deployment/web", "shop")
	wantErrorWith(t, err, `--roll-on-create: "sometimes", want one of ["auto" "always" "never"]`)
}

func TestEachReadingCommandHasTheSameFormats(t *testing.T) {
	root := New("test").Command()
	for _, name := range []string{"explain", "history", "clusters", "dead-letters", "status"} {
		cmd, _, err := root.Find([]string{name})
		testkit.Must(t, err)
		if got := cmd.Flags().Lookup("output").Value.String(); got != "table" {
			t.Errorf("%s: the default is %q", cmd.Name(), got)
		}
		for _, format := range []string{"table", "wide", "json", "yaml"} {
			if err := cmd.ParseFlags([]string{"-o", format}); err != nil {
				t.Errorf("%s -o %s: %v", cmd.Name(), format, err)
			}
		}
		if err := cmd.ParseFlags([]string{"-o", "xml"}); err == nil || !strings.HasSuffix(err.Error(), "want table, wide, json or yaml") {
			t.Errorf("%s -o xml: got %v", cmd.Name(), err)
		}
	}
}

// TestExplainHasNoFlagOfTheActuator holds that how the actuator decides is read from the installation alone.
func TestExplainHasNoFlagOfTheActuator(t *testing.T) {
	p := New("test")
	explain, _, err := p.Command().Find([]string{"explain"})
	testkit.Must(t, err)
	decide := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.settings.AddDecisionFlags(decide)
	decide.VisitAll(func(flag *pflag.Flag) {
		if explain.Flag(flag.Name) != nil {
			t.Errorf("explain has --%s", flag.Name)
		}
	})
}

func TestAnExternalNATSIsNamedWithoutItsCredentials(t *testing.T) {
	for _, tt := range []struct{ name, url, want string }{
		{"with a password", "tls://keyturn:hunter2@nats.example.com:4222", "uses the NATS at tls://nats.example.com:4222, not an embedded one"},
		{"with a token, of several servers", "nats://t0ken@a:4222,nats://t0ken@b:4222", "uses the NATS at nats://a:4222,nats://b:4222, not an embedded one"},
		{"from a Secret, which is not read", "", "uses a NATS of its own, not an embedded one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New("test")
			p.installed = &installation{namespace: "keyturn-system", pods: &corev1.PodSpec{}, settings: map[string]string{"KEYTURN_NATS_URL": tt.url}}
			err := p.connect(t.Context())
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
