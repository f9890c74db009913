package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scaledDown is a Deployment in generation 3 without pods, which reads the Secret db and has annotations.
func scaledDown(t *testing.T, annotations map[string]string, reading Reading) *Workload {
	t.Helper()
	none := int32(0)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "d", ResourceVersion: "5", Generation: 3, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Replicas: &none, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
			Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}},
		}}}}},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3},
	}
	return readAs(t, deployments, deployment, reading)
}

// runnerOf is a Rollout that runs the pods of the Deployment web, with annotations and a status.
func runnerOf(t *testing.T, annotations, status string, reading Reading) *Workload {
	t.Helper()
	return readAs(t, ArgoRollout(), rolloutOf(t, `{"metadata":{"name":"edge","namespace":"shop","uid":"r","resourceVersion":"7","generation":1,"annotations":`+annotations+`},
		"spec":{"replicas":2,"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}},"status":`+status+`}`), reading)
}

func TestAWorkloadIsAsFarAsAllThatRunItsPods(t *testing.T) {
	const (
		seen     = `{"observedGeneration":"1","workloadObservedGeneration":"3",`
		pods     = `"replicas":2,"updatedReplicas":2,"availableReplicas":2}`
		done     = seen + `"phase":"Healthy",` + pods
		paused   = seen + `"phase":"Paused",` + pods
		under    = seen + `"phase":"Progressing",` + pods
		degraded = seen + `"phase":"Degraded",` + pods
		aborted  = seen + `"phase":"Degraded","abort":true,` + pods
		unseen   = `{"observedGeneration":"1","workloadObservedGeneration":"2","phase":"Healthy",` + pods
	)
	own := func(available int32) *appsv1.Deployment {
		two := int32(2)
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "d", ResourceVersion: "9", Generation: 3},
			Spec:       appsv1.DeploymentSpec{Replicas: &two},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: available},
		}
	}
	tests := []struct {
		name     string
		alone    *appsv1.Deployment
		rollouts []string
		want     Progress
		serving  string
	}{
		{"both are complete", nil, []string{done, done}, Progress{State: Complete, Pods: 4, Done: 8}, "7"},
		{"one is paused, the other in progress", nil, []string{paused, under}, Progress{State: Progressing, Partial: true, Pods: 4, Done: 8}, "7"},
		{"one has failed, the other is in progress", nil, []string{degraded, under}, Progress{State: Failed, Pods: 4, Done: 8}, "7"},
		{"one was aborted, the other has failed", nil, []string{degraded, aborted}, Progress{State: Failed, Aborted: true, Pods: 4, Done: 8}, "7"},
		{"one has not seen the template", nil, []string{done, unseen}, Progress{State: Progressing, Pods: 4, Done: nothingDone}, ""},
		{"its own pods are complete, too", own(2), []string{done}, Progress{State: Complete, Pods: 4, Done: 8}, "9"},
		{"its own pods are not available yet", own(0), []string{done}, Progress{State: Progressing, Pods: 4, Done: 6}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			alone := scaledDown(t, nil, Reading{})
			if test.alone != nil {
				alone, _ = Read(deployments, test.alone, Reading{})
			}
			var runners []*Workload
			for _, status := range test.rollouts {
				runners = append(runners, runnerOf(t, `{}`, status, Reading{}))
			}
			w := alone.RunBy(runners...)
			got := w.Progress
			got.Message = ""
			if got != test.want || w.ServingSince != test.serving {
				t.Errorf("got %+v, serving since %q, want %+v, %q", w.Progress, w.ServingSince, test.want, test.serving)
			}
			if wantAborted := test.want.Aborted; w.Aborted != wantAborted {
				t.Errorf("aborted: got %t, want %t", w.Aborted, wantAborted)
			}
			if back := w.RunBy(); back.Progress != alone.Progress || back.IsRun() {
				t.Errorf("without Rollouts: got %+v, want %+v", back.Progress, alone.Progress)
			}
		})
	}
}

func TestTheAnnotationsOfAWorkloadAndOfTheRolloutThatRunsItCountAlike(t *testing.T) {
	const auto = "reloader.stakater.com/auto"
	tests := []struct {
		name string
		// one and other are the annotations of the Deployment and the Rollout, or of the Rollout and the Deployment.
		one, other map[string]string
		want       WantReason
		// all is what is wanted with --roll-all.
		all WantReason
	}{
		{"one asks", rollOn("auto"), nil, byAuto, byAuto},
		{"one excludes it", rollOn("auto"), rollOn("configmaps, !secret/db"), Excluded, Excluded},
		{"one asks for nothing, the other asks", rollOn("none"), rollOn("auto"), NotWanted, NotWanted},
		{"one lists something else", rollOn("secret/other"), nil, NotWanted, NotWanted},
		{"one opts out, the other asks", map[string]string{auto: "false"}, map[string]string{auto: "true"}, byAuto, byAuto},
		{"one opts out of ConfigMaps", map[string]string{"configmap." + auto: "false"}, nil, NotWanted, byAll},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, sides := range [][2]map[string]string{{test.one, test.other}, {test.other, test.one}} {
				for all, want := range map[bool]WantReason{false: test.want, true: test.all} {
					reading := Reading{All: all}
					runner := runnerOf(t, text(t, sides[1]), `{}`, reading)
					if !runner.OptIn.Empty() {
						t.Error("the Rollout, which has no template, is to be rolled itself")
					}
					if got := scaledDown(t, sides[0], reading).RunBy(runner).wants(db).Reason; got != want {
						t.Errorf("the Deployment has %v, the Rollout %v, --roll-all=%t: got %s, want %s", sides[0], sides[1], all, got, want)
					}
				}
			}
		})
	}
}
