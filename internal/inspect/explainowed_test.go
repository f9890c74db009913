package inspect

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestExplainKnowsADeletionThatTheStreamHasForgotten(t *testing.T) {
	owed := workload.Owed(workload.DeletedAfter(workload.RolledFor{Fingerprint: fp("a"), Version: "100", UID: "uid"}))
	kind, _ := workload.BuiltIn().Named("deployment")
	w, _ := workload.Read(kind, deploymentOf("web", map[string]string{
		workload.AnnotationRollOn: "auto", "keyturn.dev/rolled": `{"secret/db":"` + owed.String() + `"}`,
	}), workload.Reading{})
	for policy, want := range map[plan.Policy]string{{Delete: true}: "roll (deleted): the source was deleted", {}: "skip (unknown): nothing is known"} {
		row, err := explain(policy, w, changeOfDB().Source, events.Stored{}, events.ErrNotFound)
		if err != nil || !strings.HasPrefix(row.text(), want) {
			t.Errorf("with %+v it says %q (%v), want %q", policy, row.text(), err, want)
		}
	}
}
