package kube

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testkit"
)

// kubeconfig writes a kubeconfig for a server and returns its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: test\n" +
		"clusters: [{name: test, cluster: {server: '" + server + "'}}]\n" +
		"contexts: [{name: test, context: {cluster: test, user: test}}]\nusers: [{name: test}]\n"
	testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestClientsReachTheServerOfTheKubeconfig(t *testing.T) {
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protobuf := strings.Contains(r.Header.Get("Accept"), "protobuf")
		line := r.URL.Path + " by " + r.UserAgent()
		if protobuf {
			line += " as protobuf"
		}
		requests = append(requests, line)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	options := Options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	testkit.Must(t, flags.Parse([]string{"--kubeconfig", kubeconfig(t, server.URL)}))
	options.UserAgent = "keyturn-test/1"

	client, err := options.Client()
	testkit.Must(t, err)
	if _, err := client.CoreV1().Secrets("shop").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("listing through a server without secrets: got no error")
	}
	custom, err := options.Dynamic()
	testkit.Must(t, err)
	if _, err := custom.Resource(schema.GroupVersionResource{Group: "a.io", Version: "v1", Resource: "things"}).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("listing through a server without things: got no error")
	}
	want := "/api/v1/namespaces/shop/secrets by keyturn-test/1 as protobuf\n/apis/a.io/v1/things by keyturn-test/1"
	if got := strings.Join(requests, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnUnusableKubeconfigIsAnErrorOfTheFlag(t *testing.T) {
	options := Options{Kubeconfig: filepath.Join(t.TempDir(), "missing")}
	if _, err := options.Client(); err == nil || !strings.HasPrefix(err.Error(), "--kubeconfig: ") {
		t.Errorf("client: got %v, want an error that names --kubeconfig", err)
	}
	if _, err := options.Dynamic(); err == nil || !strings.HasPrefix(err.Error(), "--kubeconfig: ") {
		t.Errorf("dynamic: got %v, want an error that names --kubeconfig", err)
	}
}
