package events

import (
	"errors"
	"slices"

	"github.com/cloudevents/sdk-go/v2/event"
)

// Event encodes the change as a CloudEvent. It returns a RejectError for a change that ParseChange would reject.
func (c Change) Event() (event.Event, error) {
	c.Hold = HoldText(c.Hold)
	return encode(c)
}

// ParseChange decodes a change. It returns a RejectError for an event that Change.Event cannot have made.
func ParseChange(e event.Event) (Change, error) {
	return decode(e, watcher, func(c *Change, v envelope) error {
		if !v.kind.isSource() {
			return Rejectf(ReasonUnknownType, "the event is of kind %s, want a change", v.kind)
		}
		c.Cluster, c.Verb, c.Time, c.Trace, c.UID = v.cluster, v.verb, v.time, v.trace, v.uid
		c.Source = Source{Kind: v.kind, Namespace: v.extensions[extNamespace], Name: v.extensions[extName]}
		c.ResourceVersion, c.Fingerprint = v.extensions[extResourceVersion], v.extensions[extFingerprint]
		// Which characters are printable depends on the version of Unicode that the publisher was built with. A difference must not lose a change.
		c.Hold = HoldText(c.Hold)
		return nil
	})
}

// Subject returns the subject on StreamChanges.
func (c Change) Subject() string { return Subject(c.Cluster, c.Source) }

func (c Change) envelope() envelope {
	return envelope{
		cluster: c.Cluster, component: watcher, kind: c.Source.Kind, verb: c.Verb,
		id: c.ID(), selfLink: c.Source.selfLink(), uid: c.UID, time: c.Time, trace: c.Trace,
		extensions: map[string]string{
			extNamespace:       c.Source.Namespace,
			extName:            c.Source.Name,
			extResourceVersion: c.ResourceVersion,
			extFingerprint:     c.Fingerprint,
		},
	}
}

func (c Change) validate() error {
	switch {
	case !c.Source.Kind.isSource():
		return errors.New("the kind is not a kind of source")
	case !isVersion(c.ResourceVersion):
		return errors.New("the resourceversion is not a decimal number")
	case !isFingerprint(c.Fingerprint):
		return errors.New("the fingerprint is not k<key id>:<32 hex digits>")
	case c.Previous != "" && !isFingerprint(c.Previous):
		return errors.New("the previous fingerprint is not k<key id>:<32 hex digits>")
	case c.ChangedAt != "" && !isVersion(c.ChangedAt):
		return errors.New("changedAt is not a decimal number")
	case c.CreatedAt != "" && !isVersion(c.CreatedAt):
		return errors.New("createdAt is not a decimal number")
	}
	if err := c.validateKind(); err != nil {
		return err
	}
	for name, key := range c.Keys {
		switch {
		case !isDataKey(name):
			return errors.New("a data key has a name that Kubernetes does not allow")
		case key.Fingerprint != "" && !isFingerprint(key.Fingerprint):
			return errors.New("a data key's fingerprint is not k<key id>:<32 hex digits>")
		case key.ChangedAt != "" && !isVersion(key.ChangedAt):
			return errors.New("a data key's changedAt is not a decimal number")
		}
	}
	for _, name := range c.Changed {
		if !isDataKey(name) {
			return errors.New("a changed key has a name that Kubernetes does not allow")
		}
	}
	return nil
}

func (c Change) validateKind() error {
	hasStatus := c.Source.Kind == KindExternalSecret || c.Source.Kind == KindCertificate
	switch {
	case c.Cause != nil && c.Source.Kind != KindSecret && c.Source.Kind != KindExternalSecret:
		return errors.New("only events of Secrets and ExternalSecrets have a cause")
	case c.Status != nil && !hasStatus, c.Status == nil && hasStatus && c.Verb != VerbDeleted:
		return errors.New("events of ExternalSecrets and Certificates have a status, and no others")
	case c.Recent != nil && c.Source.Kind != KindSecretProviderClass:
		return errors.New("only events of SecretProviderClasses have recent fingerprints")
	case len(c.Recent) > MaxRecent:
		return errors.New("there are too many recent fingerprints")
	case slices.ContainsFunc(c.Recent, func(text string) bool { return !isFingerprint(text) }):
		return errors.New("a recent fingerprint is not k<key id>:<32 hex digits>")
	case c.Source.Kind == KindOpenBao:
		return c.validateStore()
	case c.Store != nil:
		return errors.New("only events of secrets in a store have the state of a store")
	case !c.Source.isLegal():
		return errors.New("the namespace or the name is not a Kubernetes name")
	}
	return nil
}

func (c Change) validateStore() error {
	path, err := c.Source.StorePath()
	switch {
	case err != nil:
		return err
	case c.Source.Namespace != "" || c.UID != path.Store:
		return errors.New("the namespace is not empty, or the uid is not the name of the store")
	case c.Store == nil:
		return errors.New("the state of the store is missing")
	}
	return c.Store.validate()
}
