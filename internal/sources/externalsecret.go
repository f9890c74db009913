package sources

import (
	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// targetIndex finds the ExternalSecrets that write a Secret, by <namespace>/<name> of the Secret.
const targetIndex = "target"

var externalSecretSource = source{
	kind:     events.KindExternalSecret,
	resource: "externalsecrets." + esv1.Group,
	custom:   esv1.SchemeGroupVersion.WithResource("externalsecrets"),
	indexers: cache.Indexers{targetIndex: targets},
	reduce: func(_ *Keyring, obj any) (*object, bool) {
		resource, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, false
		}
		return reduceStanding(events.KindExternalSecret, resource, syncState(resource)), true
	},
	assess: func(w *Watcher, before *last, now *object, _ notice) (events.Change, bool) {
		change, worthSaying := w.assessStanding(before, now, func(s standing) standing { return s })
		if worthSaying && now != nil {
			ascribe(&change, events.Cause{}, now.about.asked, before.usedCause())
		}
		return change, worthSaying
	},
}

func targets(obj any) ([]string, error) {
	seen, ok := obj.(*object)
	if !ok || seen.about.standing == nil || seen.about.standing.status.Secret == "" {
		return nil, nil
	}
	return []string{seen.source.Namespace + "/" + seen.about.standing.status.Secret}, nil
}

// syncState reads how an ExternalSecret stands. It is nil where that cannot be read.
//
// The time of the last refresh is no part of it: it moves also where nothing was synced. Nor is the condition's message,
// which may quote what the store has answered.
func syncState(resource *unstructured.Unstructured) *standing {
	var target esv1.ExternalSecretTarget
	var status esv1.ExternalSecretStatus
	if decodeField(resource, &target, "spec", "target") != nil || decodeField(resource, &status, "status") != nil {
		return nil
	}
	s := &standing{status: events.Status{
		Secret:   printable(targetSecret(resource.GetName(), target, status), maxStatus),
		Revision: printable(status.SyncedResourceVersion, maxStatus),
	}}
	for _, condition := range status.Conditions {
		if condition.Type != esv1.ExternalSecretReady {
			continue
		}
		s.status.Reason = printable(condition.Reason, maxStatus)
		switch condition.Status {
		case corev1.ConditionTrue:
			s.verb = events.VerbSynced
		case corev1.ConditionFalse:
			s.verb = events.VerbFailed
		}
	}
	return s
}

// targetSecret is the name of the Secret that is written. It is empty where it is something else that is, or nothing.
func targetSecret(name string, target esv1.ExternalSecretTarget, status esv1.ExternalSecretStatus) string {
	switch {
	case target.Manifest != nil || target.CreationPolicy == esv1.CreatePolicyNone:
		return ""
	case status.Binding.Name != "":
		return status.Binding.Name
	case target.Name != "":
		return target.Name
	}
	return name
}
