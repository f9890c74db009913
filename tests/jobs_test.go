package tests

import (
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// newJobsRig returns a rig for an actuator with permissions on Jobs.
func newJobsRig(t *testing.T, options programs.Options) *rig {
	t.Helper()
	testkit.Must(t, plane.ApplyKinds(t.Context(), testbed.RBACKinds(), "../deploy/components/jobs/rbac.yaml"))
	return newRig(t, options)
}

func TestJobsAreStartedAndMadeAnewOnceForEachChange(t *testing.T) {
	t.Parallel()
	r := newJobsRig(t, programs.Options{ActuatorArgs: []string{"--jobs", "start,recreate", "--settle", "50ms"}})
	for _, name := range []string{"db", "import", "export"} {
		r.secret(name, map[string]string{"password": "one"})
	}
	r.schedule("report", "db", false)
	r.schedule("asleep", "db", true)
	imported, owned := r.runJob("import", "import"), r.runOwnedJob("owned", "import")
	exported := r.runJob("export", "export")
	r.start()

	r.step("a Job of a CronJob is started once for each change", (*rig).startsOneForEachChange)
	r.step("a Job is made anew under its name", func(r *rig) { r.makesAnew(imported, owned) })
	r.step("a Job that was deleted by an actuator that was killed is made", func(r *rig) { r.makesWhatWasDeleted(exported) })
}
