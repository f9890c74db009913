package tests

import (
	"context"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
)

func TestTheStandbyTakesOverFromALeaderThatIsKilled(t *testing.T) {
	t.Parallel()
	n := startOutsideNATS(t)
	r := newRig(t, programs.Options{NATSURL: n.URL(), ActuatorArgs: []string{"--settle", "50ms", "--leader-elect"}})
	r.fleet(500, oneSecret)
	r.startActuator()
	leader := r.actuator
	r.eventually("the first actuator leads", func(context.Context) bool { return leader.Leads() })
	r.startActuator()
	r.startWatcher()
	r.startWatcher()
	before := r.generations()
	r.rotate(500, oneSecret)
	r.killInTheMiddle(leader, before)
	r.eachRolledOnce(before)
	r.eachToldOnce(before)
	if !r.actuator.Leads() {
		t.Error("the standby rolled without being the leader")
	}
}
