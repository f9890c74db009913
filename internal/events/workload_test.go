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
