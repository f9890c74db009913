package inspect

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// The stream forgets a deletion after a day, and the workload has noted that it is to be rolled for it.
func TestExplainDecidesLikeTheActuatorAboutADeletionThatTheStreamHasForgotten(t *testing.T) {
	owed := workload.Owed(workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("a"), Version: "100", UID: "uid"}))
	kind, _ := workload.BuiltIn().Named("deployment")
	for _, tt := range []struct {
		name             string
		policy           plan.Policy
		optional, noting bool
		want             string
	}{
		{"the pods can start without the source", plan.Policy{Delete: true}, true, true, "roll (deleted)"},
		{"they cannot", plan.Policy{Delete: true}, false, true, "skip (source-deleted)"},
		{"deletions roll nothing any more", plan.Policy{}, true, true, "skip (source-deleted)"},
		{"nothing is noted", plan.Policy{Delete: true}, true, false, "skip (unknown)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			annotations := rollOn("auto")
			if tt.noting {
				annotations["keyturn.dev/rolled"] = `{"secret/db":"` + owed.String() + `"}`
			}
			web := deploymentOf("web", annotations)
			web.Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef.Optional = &tt.optional
			w, _ := workload.Read(kind, web, workload.Reading{})
			row, err := explain(ExplainOptions{Policy: tt.policy}, w, changeOfDB().Source, events.Stored{}, events.ErrNotFound)
			if err != nil || !strings.HasPrefix(row.text(), tt.want) {
				t.Errorf("it says %q (%v), want %q", row.text(), err, tt.want)
			}
		})
	}
}

func TestExplainNamesTheKeysThatDoNotCount(t *testing.T) {
	change := changeOfDB()
	for name, why := range map[string]string{"user": "", "ttl": events.IgnoredByAnnotation, "last_vault_rotation": events.IgnoredAsStaticCreds} {
		change.Keys[name] = events.Key{Fingerprint: fp("3"), Ignored: why}
	}
	change.Problem = `keyturn.dev/ignore-keys: item "a b" is no key`
	stored := storedOf(t, change)
	kind, _ := workload.BuiltIn().Named("deployment")
	for rollOn, want := range map[string]string{
		"auto, !secret/db#user": "all keys but not ttl (keyturn.dev/ignore-keys), user (keyturn.dev/roll-on), last_vault_rotation (static-creds)",
		"auto, secret/db#ttl":   "all keys but not last_vault_rotation (static-creds)",
	} {
		w, _ := workload.Read(kind, deploymentOf("web", map[string]string{workload.AnnotationRollOn: rollOn}), workload.Reading{})
		row, err := explain(ExplainOptions{}, w, change.Source, stored, nil)
		if err != nil || row.read() != want {
			t.Errorf("%s: it says %q (%v), want %q", rollOn, row.read(), err, want)
		}
		if row.problem != change.Problem {
			t.Errorf("%s: what is wrong is %q", rollOn, row.problem)
		}
	}
}
