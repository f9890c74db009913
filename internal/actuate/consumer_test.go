package actuate

import "testing"

func TestADryRunHasAConsumerOfItsOwnThatTheServerForgets(t *testing.T) {
	actual, dry := consumeOptions(Options{Cluster: "east"}, nil), consumeOptions(Options{Cluster: "east", DryRun: true}, nil)
	if actual.Durable == dry.Durable {
		t.Errorf("both are called %s: a dry run would take the events of the other", actual.Durable)
	}
	if actual.ForgetAfter != 0 || dry.ForgetAfter != forgetDryRun {
		t.Errorf("the server forgets them after %s and %s, want never and %s", actual.ForgetAfter, dry.ForgetAfter, forgetDryRun)
	}
}
