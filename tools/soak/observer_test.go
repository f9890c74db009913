package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// version is a Deployment with a record, a revision, and something else in the pod template.
func version(record, revision, edited string, pods int32) *appsv1.Deployment {
	deployment := programs.NewDeployment(namespace, "web", 1, map[string]string{"keyturn.dev/roll-on": "auto"})
	if record != "" {
		deployment.Annotations[rolledAnnotation] = record
	}
	deployment.Spec.Template.Annotations = map[string]string{"edited": edited}
	if revision != "" {
		deployment.Spec.Template.Annotations[revisionAnnotation] = revision
	}
	deployment.Status.Replicas = pods
	return deployment
}

func TestTheObserverTellsPatchesApart(t *testing.T) {
	o := newObserver()
	for n, object := range []*appsv1.Deployment{
		version("", "", "no", 0),
		version("", "", "no", 1), // only its status
		version(`{"secret/db":"k:f@7/u#*"}`, "r1", "no", 1),
		version(`{"secret/db":"k:f@7/u#*","configmap/app":"k:g@8/u#*"}`, "r1", "no", 1),
		version(`{"secret/db":"k:f@7/u#*","configmap/app":"k:g@8/u#*"}`, "r1", "yes", 1),
	} {
		testkit.Must(t, o.see("deployments", testbed.Revision{Name: "web", Version: int64(n + 1), Object: object}, clock(int64(n+1))))
	}
	db, both := map[string]int64{"secret/db": 7}, map[string]int64{"secret/db": 7, "configmap/app": 8}
	want := []patch{
		{version: 1, at: clock(1), renewed: true},
		{version: 3, at: clock(3), rolled: true, renewed: true, revision: "r1", record: db},
		{version: 4, at: clock(4), revision: "r1", record: both},
		{version: 5, at: clock(5), renewed: true, revision: "r1", record: both},
	}
	j := o.now()
	testkit.WantEqual(t, "patches", want, j.patches["deployment/web"], cmp.AllowUnexported(patch{}))
	if j.newest() != 5 || j.rolls(0) != 1 || j.rolls(3) != 0 {
		t.Errorf("newest %d, rolls %d and %d after the third version", j.newest(), j.rolls(0), j.rolls(3))
	}
}

func TestTheObserverRefuses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		revision testbed.Revision
	}{
		{name: "a deletion", revision: testbed.Revision{Name: "web", Version: 1}},
		{name: "a record that is none", revision: testbed.Revision{Name: "web", Version: 1, Object: version("x", "", "", 0)}},
		{name: "a record without a version", revision: testbed.Revision{Name: "web", Version: 1, Object: version(`{"secret/db":"k:f"}`, "", "", 0)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := newObserver().see("deployments", tt.revision, clock(1)); err == nil {
				t.Error("it takes it")
			}
		})
	}
}
