package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// shopServer is an API server with a namespace shop, whose workload web and Secret db are requested only by their metadata. Requests for the
// namespace bank are refused. Two of the names are none.
func shopServer(t *testing.T) *httptest.Server {
	type m = map[string]any
	resource := func(name, kind, short string, namespaced bool) m {
		return m{"name": name, "singularName": strings.ToLower(kind), "kind": kind, "namespaced": namespaced, "verbs": []string{"list"}, "shortNames": []string{short}}
	}
	named := func(names ...string) m {
		items := []m{}
		for _, name := range names {
			items = append(items, m{"metadata": m{"name": name}})
		}
		return m{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": m{}, "items": items}
	}
	answers := map[string]m{
		"/api": {"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []m{{
			"name": "apps", "versions": []m{{"groupVersion": "apps/v1", "version": "v1"}}, "preferredVersion": m{"groupVersion": "apps/v1", "version": "v1"},
		}}},
		"/api/v1": {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []m{
			resource("secrets", "Secret", "", true), resource("namespaces", "Namespace", "ns", false),
		}},
		"/apis/apps/v1": {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": []m{resource("deployments", "Deployment", "deploy", true)}},
		"/apis/apps/v1/namespaces/shop/deployments": named("web", "worker", "api", "worker\x1b[2J", "web;reboot"),
		"/api/v1/namespaces/shop/secrets":           named("db"),
		"/api/v1/namespaces":                        named("bank", "shop"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		lists := answer["kind"] == "PartialObjectMetadataList"
		if !known || lists && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			http.Error(w, "refused", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// completed returns the completions that a shell offers for the last word, followed by the directive.
func completed(ctx context.Context, t *testing.T, server string, words ...string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", "/nowhere")
	var out bytes.Buffer
	p := New("dev")
	defer p.Close()
	p.completionTime = testkit.Patience
	cmd := p.Command()
	cmd.SetArgs(append([]string{"__completeNoDesc", words[0], "--server", server}, words[1:]...))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	testkit.Must(t, cmd.ExecuteContext(ctx))
	return strings.Join(strings.Fields(out.String()), " ")
}

func TestArgumentsAreCompletedByNamesInTheCluster(t *testing.T) {
	server := shopServer(t)
	// These are directives of cobra: 4 means no files, 2 means no space.
	for _, tt := range []struct {
		name  string
		words []string
		want  string
	}{
		{"the kinds of workloads", []string{"explain", ""}, "deployment/ statefulset/ daemonset/ cronjob/ :6"},
		{"the kinds that can be held", []string{"hold", ""}, "deployment/ statefulset/ daemonset/ cronjob/ namespace/ secret/ configmap/ :6"},
		{"the workloads of a namespace", []string{"explain", "-n", "shop", "deployment/"}, "deployment/web deployment/worker deployment/api :4"},
		{"by a short name of the kind", []string{"hold", "-n", "shop", "deploy/w"}, "deploy/web deploy/worker :4"},
		{"those that are not named yet", []string{"release", "-n", "shop", "deploy/web", "deploy/w"}, "deploy/worker :4"},
		{"namespaces as objects", []string{"hold", "ns/"}, "ns/bank ns/shop :4"},
		{"only one workload to explain", []string{"explain", "-n", "shop", "deployment/web", "deployment/"}, ":4"},
		{"the namespace of the installation", []string{"status", "--installation", ""}, "bank shop :4"},
		{"nothing without the right", []string{"hold", "-n", "bank", "deployment/"}, ":4"},
		{"no clusters without an installation", []string{"history", "--clusters", ""}, ":4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "completions", tt.want, completed(t.Context(), t, server.URL, tt.words...))
		})
	}
}

func TestCompletionEndsInTimeThoughTheAPIServerDoesNotAnswer(t *testing.T) {
	ctx, outOfTime := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		outOfTime()
		<-r.Context().Done()
	}))
	defer server.Close()
	if got := completed(ctx, t, server.URL, "hold", "deployment/"); got != ":4" {
		t.Errorf("got %s", got)
	}
}
