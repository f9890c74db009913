package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// scaledDown is a Deployment in generation 3 without pods, which reads the Secret db and has annotations.
func scaledDown(t *testing.T, annotations map[string]string) *Workload {
	t.Helper()
	none := int32(0)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "d", ResourceVersion: "5", Generation: 3, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Replicas: &none, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
			Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}},
		}}}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3},
	}
	w, ok := Read(deployments, deployment, Reading{})
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
}

// runnerOf is a Rollout that runs the pods of the Deployment web, with annotations and a status.
func runnerOf(t *testing.T, annotations, status string) *Workload {
	t.Helper()
	w, ok := Read(ArgoRollout(), rolloutOf(t, `{"metadata":{"name":"edge","namespace":"shop","uid":"r","resourceVersion":"7","generation":1,"annotations":`+annotations+`},
		"spec":{"replicas":2,"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}},"status":`+status+`}`), Reading{})
	if !ok {
		t.Fatal("it cannot be read")
	}
	return w
}

func TestAWorkloadIsAsFarAsTheRolloutThatRunsItsPods(t *testing.T) {
	const pods = `"replicas":2,"updatedReplicas":2,"availableReplicas":2}`
	tests := []struct {
		name, status string
		want         State
		serving      string
	}{
		{"all its pods are new", `{"observedGeneration":"1","workloadObservedGeneration":"3","phase":"Healthy",` + pods, Complete, "7"},
		{"its controller has not seen the new template", `{"observedGeneration":"1","workloadObservedGeneration":"2","phase":"Healthy",` + pods, Progressing, ""},
		{"its controller has seen none", `{}`, Progressing, ""},
		{"it is paused", `{"observedGeneration":"1","workloadObservedGeneration":"3","phase":"Paused"}`, Waiting, ""},
		{"it is degraded", `{"observedGeneration":"1","workloadObservedGeneration":"3","phase":"Degraded"}`, Failed, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			alone := scaledDown(t, nil)
			w := alone.RunBy(runnerOf(t, `{}`, test.status))
			if w.Progress.State != test.want || w.Progress.Pods != 2 || w.ServingSince != test.serving {
				t.Errorf("got %+v, serving since %q, want state %d, 2 pods, %q", w.Progress, w.ServingSince, test.want, test.serving)
			}
			if back := w.RunBy(nil); back.Progress != alone.Progress || back.IsRun() || back.Progress.Pods != 0 {
				t.Errorf("without the Rollout: got %+v, want %+v", back.Progress, alone.Progress)
			}
		})
	}
}

func TestTheAnnotationsOfAWorkloadAndOfTheRolloutThatRunsItCountAlike(t *testing.T) {
	db := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	tests := []struct {
		name       string
		deployment map[string]string
		rollout    string
		want       WantReason
	}{
		{"neither asks for anything", nil, `{}`, NotWanted},
		{"the Deployment asks", rollOn("auto"), `{}`, byAuto},
		{"the Rollout asks", nil, `{"keyturn.dev/roll-on":"auto"}`, byAuto},
		{"both ask", rollOn("auto"), `{"keyturn.dev/roll-on":"secret/db"}`, byName},
		{"the Rollout excludes it", rollOn("auto"), `{"keyturn.dev/roll-on":"configmaps, !secret/db"}`, Excluded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runner := runnerOf(t, test.rollout, `{}`)
			if !runner.OptIn.Empty() {
				t.Error("the Rollout, which has no template, is to be rolled itself")
			}
			if got := scaledDown(t, test.deployment).RunBy(runner).wants(db).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
