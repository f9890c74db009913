package tests

import (
	"context"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
)

// elections is held by the test whose actuators elect a leader.
var elections sync.Mutex

// holdElections waits until no other test's actuators elect a leader, and has others wait until this one and its programs have ended: there is one
// Lease that their account may write.
func holdElections(t *testing.T) {
	t.Helper()
	elections.Lock()
	t.Cleanup(elections.Unlock)
}

func TestTheStandbyTakesOverFromALeaderThatIsKilled(t *testing.T) {
	t.Parallel()
	holdElections(t)
	n := startOutsideNATS(t)
	r := newRig(t, programs.Options{NATSURL: n.URL(), ActuatorArgs: []string{"--settle", "50ms", "--leader-elect"}})
	size := fanOutSize()
	answered := int64(size) / 2
	r.fleet(size, oneSecret)
	r.startActuator("--kubeconfig", r.stallingAfter(answered))
	leader := r.actuator
	r.eventually("the first actuator leads", func(context.Context) bool { return leader.Leads() })
	r.startActuator()
	r.startWatcher()
	r.startWatcher()
	before := r.generations()
	r.rotate(size, oneSecret)
	r.killInTheMiddle(leader, before, answered)
	r.eachRolledOnce(before)
	r.eachToldOnce(before)
	if !r.actuator.Leads() {
		t.Error("the standby rolled without being the leader")
	}
}
