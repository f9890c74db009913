package workload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

func TestHowLongPodsMustStayReady(t *testing.T) {
	tests := []struct {
		name, text string
		want       time.Duration
		problem    bool
	}{
		{name: "without the annotation", want: time.Minute},
		{name: "with it", text: "90s", want: 90 * time.Second},
		{name: "with a typo that of the flag", text: "5 minutes", want: time.Minute, problem: true},
		{name: "and with one of more than a day", text: "24h1s", want: time.Minute, problem: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, _ := Read(deployments, webDeployment("50", map[string]string{AnnotationBake: test.text}), Reading{Bake: time.Minute})
			if got := w.Bake(); got != test.want || (len(w.Problems) > 0) != test.problem {
				t.Errorf("got %s with the problems %v, want %s", got, w.Problems, test.want)
			}
		})
	}
}

func TestOnlyPodsThatStayTryTheContent(t *testing.T) {
	some, _ := Read(deployments, webDeployment("50", nil), Reading{})
	scaled := webDeployment("50", nil)
	scaled.Spec.Replicas = new(int32)
	scaled.Status = appsv1.DeploymentStatus{}
	none, _ := Read(deployments, scaled, Reading{})
	run := *some
	run.starts = true
	one := int32(1)
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &one, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &one},
	}}}
	frozen := *some
	frozen.Progress = statefulSetProgress(set)
	if !some.Tries() || none.Tries() || run.Tries() || frozen.Tries() {
		t.Errorf("with pods: %t, without: %t, of a run: %t, below a partition: %t", some.Tries(), none.Tries(), run.Tries(), frozen.Tries())
	}
}
