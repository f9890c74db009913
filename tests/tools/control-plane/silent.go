package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// silent is a client whose Events go nowhere. Nobody looks at what controllers tell of ReplicaSets and pods, and that is a fifth of what they write
// for a rollout.
type silent struct{ kubernetes.Interface }

func (s silent) CoreV1() typedcorev1.CoreV1Interface { return silentCore{s.Interface.CoreV1()} }

type silentCore struct{ typedcorev1.CoreV1Interface }

func (c silentCore) Events(namespace string) typedcorev1.EventInterface {
	return silentEvents{c.CoreV1Interface.Events(namespace)}
}

// silentEvents takes what a recorder writes for written.
type silentEvents struct{ typedcorev1.EventInterface }

func (silentEvents) CreateWithEventNamespace(event *corev1.Event) (*corev1.Event, error) {
	return event, nil
}

func (silentEvents) UpdateWithEventNamespace(event *corev1.Event) (*corev1.Event, error) {
	return event, nil
}

func (silentEvents) PatchWithEventNamespace(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	return event, nil
}
