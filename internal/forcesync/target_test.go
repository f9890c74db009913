package forcesync

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestTheTargetKnowsWhatWasAskedBefore(t *testing.T) {
	annotated := metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", Annotations: map[string]string{
		externalsecret.AnnotationForceSync: externalsecret.ForceSync{Event: "bao/7", Repeat: 2}.String(), annotationSyncedFrom: "1-a",
	}}
	own := targetOf(&externalsecret.ExternalSecret{ObjectMeta: annotated}, nil)
	if repeat, ok := own.asked("bao/7"); !ok || repeat != 2 {
		t.Errorf("asked for the event: %t, in repeat %d; want 2", ok, repeat)
	}
	if _, ok := own.asked("bao/8"); ok {
		t.Error("another event was asked for")
	}
	if from, ok := own.syncedFrom(); !ok || from != "1-a" {
		t.Errorf("synced from %q (%t)", from, ok)
	}
	if own.isCluster() || own.Namespace != "shop" || own.resource != externalsecret.ExternalSecrets {
		t.Errorf("it is patched as %+v", own)
	}

	owner := &externalsecret.ClusterExternalSecret{ObjectMeta: annotated}
	owner.Namespace, owner.Name = "", "all"
	cluster := targetOf(&externalsecret.ExternalSecret{ObjectMeta: annotated}, owner)
	if _, ok := cluster.syncedFrom(); ok {
		t.Error("one note of a ClusterExternalSecret stands for all that it made")
	}
	if !cluster.isCluster() || cluster.Namespace != "" || cluster.Name != "all" {
		t.Errorf("it is patched as %+v", cluster)
	}

	foreign := targetOf(&externalsecret.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{externalsecret.AnnotationForceSync: "1700000000"},
	}}, nil)
	if _, ok := foreign.asked("1700000000"); ok {
		t.Error("what others wrote is taken for ours")
	}
}
