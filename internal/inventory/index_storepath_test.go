package inventory

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestIndexFindsWhatReadsASecretStore(t *testing.T) {
	db := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
	inTeam := db
	inTeam.Namespace = "team-a"
	colon := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "a:b"}
	colonMount := events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "kv:2", Path: "a:b"}
	agent := func(path string) map[string]string {
		return map[string]string{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-inject-secret-a": path}
	}
	tests := []struct {
		name     string
		workload map[string]string
		template map[string]string
		rollAll  bool
		path     events.StorePath
		want     bool
	}{
		{name: "a path that roll-on names", workload: rollOn("openbao:secret/shop/db"), path: db, want: true},
		{name: "the path in another namespace", workload: rollOn("openbao:secret/shop/db"), path: inTeam},
		{name: "a path in a namespace", workload: rollOn("openbao:team-a/secret/shop/db"), path: inTeam, want: true},
		{name: "a pattern, whose star goes over slashes", workload: rollOn("openbao:secret/*"), path: db, want: true},
		{name: "a path in its store", workload: rollOn("openbao:bao:secret/shop/db"), path: db, want: true},
		{name: "a path in another store", workload: rollOn("openbao:dev:secret/shop/db"), path: db},
		{name: "a pattern in its store", workload: rollOn("openbao:bao:secret/*"), path: db, want: true},
		{name: "an exclusion of its store", workload: rollOn("openbao:secret/*, !openbao:bao:*"), path: db},
		{name: "a path with a colon, in its store", workload: rollOn("openbao:bao:secret/a:b"), path: colon, want: true},
		{name: "a mount with a colon, in its store", workload: rollOn("openbao:bao:kv:2/a:b"), path: colonMount, want: true},
		{name: "a mount with a colon, whose first part is taken for a store", workload: rollOn("openbao:kv:2/a:b"), path: colonMount},
		{name: "what an agent injects, with auto", workload: rollOn("auto"), template: agent("secret/data/shop/db"), path: db, want: true},
		{name: "what an agent injects, with secrets", workload: rollOn("secrets"), template: agent("secret/data/shop/db"), path: db},
		{name: "what an agent injects, with Reloader's auto", workload: map[string]string{"reloader.stakater.com/auto": "true"}, template: agent("secret/data/shop/db"), path: db},
		{name: "what an agent injects, with all", rollAll: true, template: agent("secret/data/shop/db"), path: db, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := indexWith(workload.Reading{All: tt.rollAll}, func(workload.Key) {}, unlinked)
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "1", Annotations: tt.workload,
			}}
			deployment.Spec.Template.Annotations = tt.template
			w := readAs(t, deployments, deployment, workload.Reading{All: tt.rollAll, Stores: everyStore})
			x.Written(w)
			change := events.Change{
				Source: tt.path.Source(), Verb: events.VerbRotated, UID: "bao", ResourceVersion: "1794796013000000000",
				ChangedAt: "1794796013000000000", Fingerprint: "k0:7", Truncated: true,
			}
			rolls := false
			for _, dependent := range x.Dependents(change.Source) {
				rolls = plan.Decide(dependent, change, plan.Memory{}, plan.Policy{}).Reason == plan.Changed
			}
			if rolls != tt.want {
				t.Errorf("rolls: %t, want %t", rolls, tt.want)
			}
			x.Forget(w.Key(), "u", "")
			if len(x.Dependents(change.Source)) > 0 || len(x.bySource) > 0 || len(x.byPattern) > 0 {
				t.Error("the index keeps a workload that is gone")
			}
		})
	}
}
