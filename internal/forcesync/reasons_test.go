package forcesync

import (
	"testing"
	"time"

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
	for _, obstacle := range []externalsecret.Obstacle{
		externalsecret.CreatedOnce, externalsecret.NoInterval, externalsecret.Generates,
		externalsecret.NoTarget, externalsecret.Immutable, externalsecret.Owned,
	} {
		if verdicts[reason(obstacle)].event != eventNotSynced {
			t.Errorf("obstacle %q makes no Kubernetes Event", obstacle)
		}
	}
}

// No refresh brings the new version, so the outcome says why, and is no failure that may pass.
func TestWhatTheOperatorCannotWriteIsToldOnceItHasTried(t *testing.T) {
	const changed = ": the secret in the store changed, but "
	for _, test := range []struct {
		name             string
		prepare          func(*bed)
		outcome, warning string
		again            int // how many patches the next version makes
	}{
		{
			"an immutable Secret",
			func(b *bed) { b.failing["db"], b.message = true, "could not update secret, target is immutable" },
			"db skipped immutable-target",
			"db NotSynced immutable-target" + changed + "the Secret is immutable: it has to be deleted to be created with the new content", 0,
		},
		{
			"the Secret of another ExternalSecret",
			func(b *bed) { b.failing["db"], b.message = true, "target is owned by another ExternalSecret" },
			"db skipped owned-target",
			"db NotSynced owned-target" + changed + "something else owns the Secret, which the operator therefore does not write", 0,
		},
		{
			"a Secret that somebody else may create at any time",
			func(b *bed) { b.reason = "SecretMissing" },
			"db skipped target-missing",
			"db NotSynced target-missing" + changed + "there is no Secret, and creationPolicy Merge creates none", 1,
		},
	} {
		runInBed(t, test.name, func(b *bed) {
			b.secret("db", "shop/db", "")
			test.prepare(b)
			b.start()
			for version, patches := range []int{1, test.again} {
				event := b.rotate("shop/db", int64(2+version), nil)
				b.pass(time.Second)
				b.mustSettle(event)
				if got := b.taken(); len(got) != patches {
					b.Errorf("patches: got %q, want %d", got, patches)
				}
				b.want("outcomes", b.outcomes(), []string{test.outcome})
				b.want("Kubernetes Events", b.warnings(), []string{test.warning})
			}
			if left := b.left(); left != "" {
				b.Errorf("something is left: %s", left)
			}
		})
	}
}
