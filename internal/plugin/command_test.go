package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"
)

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
		{"all namespaces", []string{"history", "-A"}, map[string]string{"cluster": "prod", "namespace": "", "output": "table"}},
		{"the status, which is of all namespaces", []string{"status"}, map[string]string{"cluster": "prod", "namespace": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New("test")
			t.Cleanup(p.close)
			cmd, args, err := p.Command().Find(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(args); err != nil {
				t.Fatal(err)
			}
			p.access.typed, p.access.namespace = client, "shop"
			if err := p.configure(t.Context(), cmd.Flags()); err != nil {
				t.Fatal(err)
			}
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
