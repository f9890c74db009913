package chart

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// folderOfKeys writes the Secret of the routes as the files of a volume.
type folderOfKeys string

func (f folderOfKeys) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	if secret.Name != "keyturn-nats-routes" {
		return secret, nil
	}
	for name, content := range secret.StringData {
		if err := os.WriteFile(filepath.Join(string(f), name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return secret, nil
}

// routesOf returns the options of the NATS server in a pod of the StatefulSet, with the files that the pod has.
func routesOf(t *testing.T, pod string, objects map[string]object) *server.Options {
	t.Helper()
	dir := t.TempDir()
	err := embedded.MakeKeys(t.Context(), embedded.KeyOptions{
		Secrets: folderOfKeys(dir), RoutesNamespace: systemNamespace, Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	testkit.Must(t, err)
	files, _ := objects["ConfigMap keyturn-system/keyturn-nats"].at("data").(map[string]any)
	for name, content := range files {
		text := strings.ReplaceAll(fmt.Sprint(content), "/etc/keyturn", dir)
		testkit.WriteFile(t, filepath.Join(dir, name), text)
	}
	t.Setenv("POD_NAME", pod)
	for _, program := range []string{"WATCHER", "ACTUATOR", "READER"} {
		pair, err := nkeys.CreateUser()
		testkit.Must(t, err)
		public, err := pair.PublicKey()
		testkit.Must(t, err)
		t.Setenv("NATS_"+program+"_KEY", public)
	}
	clients := t.TempDir()
	testkit.NewCA(t).Issue(t, clients, time.Now().Add(time.Hour))
	t.Setenv("NATS_TLS_CERT", filepath.Join(clients, "tls.crt"))
	t.Setenv("NATS_TLS_KEY", filepath.Join(clients, "tls.key"))
	t.Setenv("NATS_LISTEN", "0.0.0.0:4222")
	options, err := server.ProcessConfigFile(filepath.Join(dir, "replicas.conf"))
	testkit.Must(t, err)
	return options
}

func TestTheRoutesLeadToThePodsAndToNothingElse(t *testing.T) {
	objects := kustomized(t, "base", "high-availability")
	actuator := objects["StatefulSet keyturn-system/keyturn-actuator"]
	service := fmt.Sprint(actuator.at("spec", "serviceName"))
	options := routesOf(t, "keyturn-actuator-1", objects)
	if options.ServerName != "keyturn-actuator-1" || options.Cluster.Port != 6222 {
		t.Errorf("got server %q with routes at port %d, want the name of the pod and 6222", options.ServerName, options.Cluster.Port)
	}
	if len(options.Nkeys) != 3 {
		t.Errorf("users: got %d, want those of nats.conf", len(options.Nkeys))
	}
	if options.TLSConfig == nil || options.TLSConfig.ClientAuth != tls.NoClientCert {
		t.Error("the server has no TLS for its clients, or wants certificates of them")
	}
	if got, want := fmt.Sprint(len(options.Routes)), fmt.Sprint(actuator.at("spec", "replicas")); got != want {
		t.Errorf("routes: got %s, want one for each of %s replicas", got, want)
	}
	config := options.Cluster.TLSConfig
	if config == nil || config.ClientAuth != tls.RequireAndVerifyClientCert || len(config.Certificates) != 1 {
		t.Fatal("the routes do not verify each other")
	}
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	testkit.Must(t, err)
	for i, route := range options.Routes {
		if want := fmt.Sprintf("keyturn-actuator-%d.%s:6222", i, service); route.Host != want {
			t.Errorf("route %d: got %s, want %s", i, route.Host, want)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: route.Hostname(), Roots: config.RootCAs}); err != nil {
			t.Errorf("the certificate at %s: %v", route.Host, err)
		}
	}
	names := objects["Service keyturn-system/"+service]
	got := fmt.Sprintf("%v %v %v", names.at("spec", "clusterIP"), names.at("spec", "publishNotReadyAddresses"), names.at("spec", "ports"))
	if want := "None true [map[name:nats-routes port:6222 targetPort:6222]]"; got != want {
		t.Errorf("Service %s: got %s, want the pods' names before they are ready", service, got)
	}
	const peers = "podSelector:map[matchLabels:map[app.kubernetes.io/name:keyturn-actuator]]"
	policy := objects["NetworkPolicy keyturn-system/keyturn-nats-routes"]
	for direction, want := range map[string]string{
		"ingress": "[map[from:[map[" + peers + "]] ports:[map[port:6222]]]]",
		"egress":  "[map[ports:[map[port:6222]] to:[map[" + peers + "]]]]",
	} {
		if got := fmt.Sprint(policy.at("spec", direction)); got != want {
			t.Errorf("%s: got %s, want %s", direction, got, want)
		}
	}
	if got, want := fmt.Sprint(policy.at("spec")), peers+" policyTypes:[Ingress Egress]"; !strings.Contains(got, want) {
		t.Errorf("policy: got %s, want it for the actuators", got)
	}
}

// TestComponentsThatExcludeEachOtherDoNotBuild shows that a wrong combination is found before it is applied.
func TestComponentsThatExcludeEachOtherDoNotBuild(t *testing.T) {
	for _, both := range [][]string{
		{"high-availability", "leaf"},
		{"leaf", "high-availability"},
		{"high-availability", "external-nats"},
		{"external-nats", "high-availability"},
		{"ephemeral-storage", "external-nats"},
		{"external-nats", "ephemeral-storage"},
		{"cert-manager", "external-nats"},
		{"external-nats", "cert-manager"},
	} {
		t.Run(strings.Join(both, " and then "), func(t *testing.T) {
			t.Parallel()
			if out, err := testbed.Kustomize(t.Context(), os.Stderr, overlay(t, "", "base", both...)); err == nil {
				t.Errorf("got %d bytes of manifests, want an error", len(out))
			}
		})
	}
}
