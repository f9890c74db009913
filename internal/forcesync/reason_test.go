package forcesync

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestEveryReasonOfASyncIsTold(t *testing.T) {
	sentences := make(map[string]bool)
	for reason, verdict := range verdicts {
		if verdict.sentence == "" || sentences[verdict.sentence] {
			t.Errorf("%s says nothing, or the same as another", reason)
		}
		sentences[verdict.sentence] = true
		if failed := verdict.verb == events.VerbFailed; failed != (verdict.event == eventSyncFailed) {
			t.Errorf("%s: the verb is %s, and the Kubernetes Event %q", reason, verdict.verb, verdict.event)
		}
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
