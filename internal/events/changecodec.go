package events

import (
	"cmp"
	"slices"
)

// Encode returns the change as a stream stores it. It returns a RejectError for a change that Stored.Change would reject.
func (c Change) Encode() (Stored, error) {
	c.Hold, c.Writers, c.Problem = HoldText(c.Hold), writersText(c.Writers), HoldText(c.Problem)
	return encode(c)
}

// Change returns the stored change. It returns a RejectError if the event is not a change, or is not about the object in its subject.
func (s Stored) Change() (Change, error) {
	return decode(s, watcher, func(c *Change, v envelope) error {
		if !v.kind.isSource() {
			return Rejectf(ReasonUnknownType, "the event is of kind %s, want a change", v.kind)
		}
		c.Cluster, c.Verb, c.Time, c.Trace, c.UID = v.cluster, v.verb, v.time, v.trace, v.uid
		c.Source = Source{Kind: v.kind, Namespace: v.attributes.text(extNamespace), Name: v.attributes.text(extName)}
		c.ResourceVersion, c.Fingerprint = v.attributes.text(extResourceVersion), v.attributes.text(extFingerprint)
		// The set of printable characters depends on the publisher's version of Unicode. A difference must not lose a change.
		c.Hold, c.Writers, c.Problem = HoldText(c.Hold), writersText(c.Writers), HoldText(c.Problem)
		return nil
	})
}

// Subject returns the subject on StreamChanges.
func (c Change) Subject() string { return Subject(c.Cluster, c.Source) }

func (c Change) envelope() envelope {
	return envelope{
		cluster: c.Cluster, component: watcher, kind: c.Source.Kind, verb: c.Verb,
		id: c.ID(), selfLink: c.Source.selfLink(), uid: c.UID, time: c.Time, trace: c.Trace,
		attributes: fields{
			{extNamespace, c.Source.Namespace},
			{extName, c.Source.Name},
			{extResourceVersion, c.ResourceVersion},
			{extFingerprint, c.Fingerprint},
		},
	}
}

func (c Change) validate() error {
	err := cmp.Or(
		faultIf(!c.Source.Kind.isSource(), "the kind is not a kind of source"),
		faultIf(!isVersion(c.ResourceVersion), "the resourceversion is not a decimal number"),
		faultIf(!isFingerprint(c.Fingerprint), "the fingerprint is not k<key id>:<32 hex digits>"),
		faultIf(c.Previous != "" && !isFingerprint(c.Previous), "the previous fingerprint is not k<key id>:<32 hex digits>"),
		faultIf(c.ChangedAt != "" && !isVersion(c.ChangedAt), "changedAt is not a decimal number"),
		faultIf(c.CreatedAt != "" && !isVersion(c.CreatedAt), "createdAt is not a decimal number"),
		c.validateKind(),
		c.Generated.validate(),
		faultIf(slices.ContainsFunc(c.Changed, func(name string) bool { return !isDataKey(name) }), "a changed key is not a key of Kubernetes"))
	for name, key := range c.Keys {
		err = cmp.Or(err,
			faultIf(!isDataKey(name), "a data key has a name that Kubernetes does not allow"),
			key.validate())
	}
	for name, bucket := range c.Buckets {
		err = cmp.Or(err, faultIf(!isBucket(name), "a bucket's name is not two hex digits"), bucket.validate())
	}
	return err
}

func (k Key) validate() error {
	return cmp.Or(
		faultIf(k.Fingerprint != "" && !isFingerprint(k.Fingerprint), "a data key's fingerprint is not k<key id>:<32 hex digits>"),
		faultIf(k.ChangedAt != "" && !isVersion(k.ChangedAt), "a data key's changedAt is not a decimal number"),
		faultIf(k.Ignored != "" && !isLabel(k.Ignored), "the reason why a data key is ignored is not a word"),
		faultIf(k.Since != "" && !isVersion(k.Since), "a data key's since is not a decimal number"))
}

func (g *Generated) validate() error {
	if g == nil {
		return nil
	}
	isOther := func(text string) bool { return text != "" && !isFingerprint(text) }
	return faultIf(!isFingerprint(g.From) || isOther(g.Settings) || isOther(g.Written),
		"what keys are generated from is not k<key id>:<32 hex digits>")
}

func (c Change) validateKind() error {
	kind := c.Source.Kind
	hasStatus := kind == KindExternalSecret || kind == KindCertificate
	err := cmp.Or(
		faultIf(c.Cause != nil && kind != KindSecret && kind != KindExternalSecret, "only events of Secrets and ExternalSecrets have a cause"),
		faultIf(c.Status != nil && !hasStatus || c.Status == nil && hasStatus && c.Verb != VerbDeleted,
			"events of ExternalSecrets and Certificates have a status, and no others"),
		faultIf(c.Recent != nil && kind != KindSecretProviderClass, "only events of SecretProviderClasses have recent fingerprints"),
		faultIf(len(c.Recent) > MaxRecent, "there are too many recent fingerprints"),
		faultIf(slices.ContainsFunc(c.Recent, func(text string) bool { return !isFingerprint(text) }),
			"a recent fingerprint is not k<key id>:<32 hex digits>"))
	if kind == KindOpenBao {
		return cmp.Or(err, c.validateStore())
	}
	return cmp.Or(err,
		faultIf(c.Store != nil, "only events of secrets in a store have the state of a store"),
		faultIf(!c.Source.isLegal(), "the namespace or the name is not a Kubernetes name"))
}

func (c Change) validateStore() error {
	path, err := c.Source.StorePath()
	return cmp.Or(err,
		faultIf(c.Source.Namespace != "" || c.UID != path.Store, "the namespace is not empty, or the uid is not the name of the store"),
		c.Store.validate())
}
