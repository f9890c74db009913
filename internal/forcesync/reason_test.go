package forcesync

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestEveryReasonOfASyncIsTold(t *testing.T) {
	names, sentences := make(map[string]bool), make(map[string]bool)
	for reason := unknown; reason <= denied; reason++ {
		verdict, ok := verdicts[reason]
		if !ok || reason.String() == "" || reason.sentence() == "" {
			t.Errorf("reason %d has no name or says nothing", reason)
			continue
		}
		if names[reason.String()] || sentences[reason.sentence()] {
			t.Errorf("%s is called or says the same as another", reason)
		}
		names[reason.String()], sentences[reason.sentence()] = true, true
		if failed := verdict.verb == events.VerbFailed; failed != (verdict.event == eventSyncFailed) {
			t.Errorf("%s: the verb is %s, and the Kubernetes Event %q", reason, verdict.verb, verdict.event)
		}
	}
	if len(verdicts) != len(names) {
		t.Errorf("%d reasons have a verdict, want %d", len(verdicts), len(names))
	}
}

func TestEveryObstacleHasAReason(t *testing.T) {
	for obstacle := externalsecret.NoObstacle + 1; obstacle <= externalsecret.Generates; obstacle++ {
		reason, ok := obstacles[obstacle]
		if !ok || verdicts[reason].event != eventNotSynced {
			t.Errorf("obstacle %d has no reason that makes a Kubernetes Event", obstacle)
		}
	}
}
