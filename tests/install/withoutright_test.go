package install

import (
	"context"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testkit"
)

// What happens without the right to patch is in missingright_test.go of tests.
func TestWithoutARightThatAProgramCanDoWithoutWorkloadsRollAllTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, account, right, says string }{
		{"a watcher that may not watch lists again and again", rights.WatcherAccount, "watch secrets", "no permission to list and watch secrets"},
		{"an actuator that may not create Events tells of no outcome", rights.ActuatorAccount, "create events", "writing a kubernetes event failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, shopScene(), withoutRight(t, rights.GrantsOf(t, "base/rbac.yaml"), tt.account, tt.right), withoutStreaming)
			b.run()
			b.rolled(nil, readers...)
			testkit.Await(t, "the API server has refused it", func(context.Context) bool { return b.isRefused(tt.account, tt.right) })
			testkit.Await(t, "the program says so", func(context.Context) bool {
				return strings.Contains(b.running[tt.account].Output(), tt.says)
			})
		})
	}
}
