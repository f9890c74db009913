package kube

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnEventIsAboutItsObjectAndBesideIt(t *testing.T) {
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u"}
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	got := Event{
		About: about, Controller: "keyturn.dev/actuator", Type: corev1.EventTypeNormal, Reason: "Rolled", Message: "for secret/db",
		Annotations: map[string]string{"a": "b"}, At: at,
	}.Object()
	want := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "web.", Namespace: "shop", Annotations: map[string]string{"a": "b"}},
		InvolvedObject: about, Reason: "Rolled", Message: "for secret/db", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "keyturn"}, ReportingController: "keyturn.dev/actuator",
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the event (-want +got):\n%s", diff)
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	for length := maxEventMessage - 6; length < maxEventMessage+6; length++ {
		text := strings.Repeat("x", length%3) + strings.Repeat("€", length/3)
		got := Event{Message: text}.Object().Message
		if len(got) > maxEventMessage || !utf8.ValidString(got) {
			t.Errorf("of %d bytes are left %d: %q", len(text), len(got), got[max(0, len(got)-8):])
		}
		if cut := strings.HasSuffix(got, "..."); cut != (len(text) > maxEventMessage) {
			t.Errorf("of %d bytes are left %d, ending in dots: %t", len(text), len(got), cut)
		}
	}
}
