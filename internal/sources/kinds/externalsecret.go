package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

type externalSecretKind struct{}

func (externalSecretKind) Listing() Listing {
	return Listing{Kind: events.KindExternalSecret, Resource: externalsecret.ExternalSecrets, Grant: grantCustom}
}

func (externalSecretKind) Reduce(_ *Keyring, obj any) (*Object, bool) {
	resource, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return newStatusObject(events.KindExternalSecret, resource, syncStatus(resource)), true
}

func (externalSecretKind) Assess(v View, before *LastEvent, o State) (events.Change, bool) {
	change, ok := assessStatus(v, before, o.Now, func(s status) status { return s })
	if ok && o.Now != nil {
		setCause(&change, events.Cause{}, o.Now.details.asked, before.usedRequest())
	}
	return change, ok
}

// syncStatus returns the status of an ExternalSecret, or nil if it cannot be read. It omits the time of the last refresh, which changes even without
// a sync.
func syncStatus(resource *unstructured.Unstructured) *status {
	read, err := externalsecret.ReadStatus(resource)
	if err != nil {
		return nil
	}
	s := &status{fields: events.Status{
		Reason: ifPrintable(read.Reason, maxStatus), Revision: ifPrintable(read.SyncedVersion, maxStatus),
	}}
	if read.Target.Kind == events.KindSecret {
		s.fields.Secret = ifPrintable(read.Target.Name, maxStatus)
	}
	switch {
	case read.Ready:
		s.verb = events.VerbSynced
	case read.Failed:
		s.verb = events.VerbFailed
	}
	return s
}
