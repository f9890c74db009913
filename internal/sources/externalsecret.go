package sources

import (
	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
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
	assess: func(w *Watcher, before *last, now *object, _ queueEntry) (events.Change, bool) {
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
// The time of the last refresh is no part of it: it moves also where nothing was synced.
func syncState(resource *unstructured.Unstructured) *standing {
	status, err := externalsecret.ReadStatus(resource)
	if err != nil {
		return nil
	}
	s := &standing{status: events.Status{
		Reason: printable(status.Reason, maxStatus), Revision: printable(status.SyncedVersion, maxStatus),
	}}
	if status.Target.Kind == events.KindSecret {
		s.status.Secret = printable(status.Target.Name, maxStatus)
	}
	switch {
	case status.Ready:
		s.verb = events.VerbSynced
	case status.Failed:
		s.verb = events.VerbFailed
	}
	return s
}
