package kube

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxEventMessage is the maximum length of a Kubernetes Event's message, in bytes.
const maxEventMessage = 1024

// Event is a Kubernetes Event about an object.
type Event struct {
	About        corev1.ObjectReference
	Name         string // of the event itself; if empty, the API server chooses one
	Controller   string // the program that reports it, such as keyturn.dev/actuator
	Type, Reason string // corev1.EventTypeNormal or corev1.EventTypeWarning
	Message      string // may have any length, and is cut to the limit of the API server
	Annotations  map[string]string
	At           time.Time
}

// Object returns the event as an API object, in the namespace of the object that it is about.
func (e Event) Object() *corev1.Event {
	at := metav1.NewTime(e.At)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: e.Name, Namespace: e.About.Namespace, Annotations: e.Annotations},
		InvolvedObject: e.About,
		Reason:         e.Reason, Message: e.Message, Type: e.Type,
		Source:              corev1.EventSource{Component: "keyturn"},
		ReportingController: e.Controller,
		FirstTimestamp:      at, LastTimestamp: at, Count: 1,
	}
	if e.Name == "" {
		event.GenerateName = e.About.Name + "."
	}
	if len(event.Message) > maxEventMessage {
		// The cut may split a character, and the API server rejects invalid UTF-8.
		event.Message = strings.ToValidUTF8(event.Message[:maxEventMessage-3], "") + "..."
	}
	return event
}
