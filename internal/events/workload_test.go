package events

import "testing"

func TestSelfLinks(t *testing.T) {
	tests := map[string]string{
		"deployment":  "/apis/apps/v1/namespaces/shop/deployments/web",
		"statefulset": "/apis/apps/v1/namespaces/shop/statefulsets/web",
		"daemonset":   "/apis/apps/v1/namespaces/shop/daemonsets/web",
		"cronjob":     "/apis/batch/v1/namespaces/shop/cronjobs/web",
		"job":         "/apis/batch/v1/namespaces/shop/jobs/web",
		"rollout":     "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web",

		"externalsecret": "/apis/external-secrets.io/v1/namespaces/shop/externalsecrets/web",
		"pod":            "",
	}
	for kind, want := range tests {
		if got := (Workload{Kind: kind, Namespace: "shop", Name: "web"}).selfLink(); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestAWorkloadOfAConfiguredKindSaysWhereItIs(t *testing.T) {
	tests := []struct {
		name, kind, apiVersion, resource string
		want                             string
	}{
		{
			"a custom resource", "prometheus", "monitoring.coreos.com/v1", "prometheuses",
			"/apis/monitoring.coreos.com/v1/namespaces/shop/prometheuses/web",
		},
		{"a kind that readers know", "deployment", "example.org/v1", "deployments", ""},
		{"a kind that is no word", "my-kind", "example.org/v1", "widgets", ""},
		{"no resource", "widget", "example.org/v1", "", ""},
		{"no version", "widget", "example.org", "widgets", ""},
		{"a group of Kubernetes without a domain", "widget", "apps/v1", "widgets", ""},
		{"a path in the resource", "widget", "example.org/v1", "widgets/status", ""},
		{"a path in the version", "widget", "example.org/v1/namespaces/other", "widgets", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := Workload{Kind: tt.kind, Namespace: "shop", Name: "web", APIVersion: tt.apiVersion, Resource: tt.resource}
			if got := w.selfLink(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
