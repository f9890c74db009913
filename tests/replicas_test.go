package tests

import (
	"os"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
)

// replica starts one of the actuators, and does not wait until it is ready.
func (r *rig) replica(i int) *programs.Program {
	r.Helper()
	actuator, err := r.programs.StartReplica(i)
	if err != nil {
		r.Fatal(err)
	}
	r.own(actuator)
	return actuator
}

func TestNoChangeIsLostWhileEachActuatorLosesItsVolumeInTurn(t *testing.T) {
	t.Parallel()
	holdElections(t)
	const size = 36
	r := newRig(t, programs.Options{Actuators: 3, ActuatorArgs: []string{"--settle", "50ms", "--leader-elect", "--max-rolls-per-hour", "0"}})
	r.fleet(size, ownSecret)
	actuators := []*programs.Program{r.replica(0), r.replica(1), r.replica(2)}
	for _, actuator := range actuators {
		actuator.AwaitReady(r.T, patience)
	}
	r.startWatcher()
	r.startWatcher()
	r.awaitRecords()
	for i, actuator := range actuators {
		before := r.generations()
		// A third changes before the loss, a third while the actuator is away, and a third while it comes back.
		change := func(third int) {
			for j := third * size / 3; j < (third+1)*size/3; j++ {
				r.secret(ownSecret(j), map[string]string{"password": "after the loss of " + r.programs.StoreDir(i)})
			}
		}
		change(0)
		actuator.Kill()
		if err := os.RemoveAll(r.programs.StoreDir(i)); err != nil {
			t.Fatal(err)
		}
		change(1)
		actuators[i] = r.replica(i)
		change(2)
		actuators[i].AwaitReady(r.T, patience)
		r.eachRolledOnce(before)
	}
}
