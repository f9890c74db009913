package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
)

// secretProviderClassKind is the kind of the objects that the driver mounts. Only the annotations of the object itself count: its content is reported
// by the driver for each pod in a podStatus.
type secretProviderClassKind struct{}

func (secretProviderClassKind) Listing() Listing {
	return Listing{
		Kind: events.KindSecretProviderClass, Resource: secretsStore.WithResource("secretproviderclasses"), Grant: grantSecretProviderClasses,
		Part: podStatusKind{},
	}
}

func (secretProviderClassKind) Reduce(_ *Keyring, obj any) (*Object, bool) {
	resource, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return &Object{
		Source: nameOf(events.KindSecretProviderClass, resource), UID: resource.GetUID(), ResourceVersion: resource.GetResourceVersion(),
	}, true
}

func (secretProviderClassKind) Assess(v View, before *LastEvent, o State) (events.Change, bool) {
	if o.Now == nil {
		return deleted(before)
	}
	pods := v.Contents.of(v.Cached.podStatuses(o.Now.Source))
	if !before.IsReadable() {
		return firstOfClass(o.Now, pods)
	}
	news := newsOfClass(before, o.Now, pods)
	v.Contents.settle(pods, news)
	return compareClass(before, o.Now, pods, news)
}

// compareClass returns the event for a SecretProviderClass, compared with the last event on its subject. Pods are those that mount it, and news are
// those of them whose content is not published yet. It is a pure function.
//
//	last event     a pod                                          event
//	none           has content                                        observed
//	exists, gone   starts, ends, or has content that all have had     none
//	exists, gone   gets content that is not among the recent ones     changed
//	exists, gone   gets content older than the one that it had        changed: back to earlier content
//	exists, gone   gets recent content newer than the one it had      none: it lags behind others
//	gone           has the same content                               observed: the class exists again
func compareClass(before *LastEvent, class *Object, pods, news []podState) (events.Change, bool) {
	switch {
	case len(news) > 0:
		return changedClass(before, class, pods, news), true
	case before.Verb() == events.VerbDeleted:
		again := before.content(events.VerbObserved)
		again.UID, again.ResourceVersion, again.Previous = string(class.UID), class.ResourceVersion, again.Fingerprint
		again.Ignore, again.Match = class.ignore, class.match
		return again, true
	}
	return events.Change{}, false
}

// firstOfClass returns the event for a class that is not on the stream. Its content is that of the last write into a running pod, or else that of the
// oldest pod. Whether other pods will get a new pod's content is not known yet.
func firstOfClass(class *Object, pods []podState) (events.Change, bool) {
	if len(pods) == 0 {
		return events.Change{}, false
	}
	first := pods[0].now
	for _, p := range pods {
		if p.now.podStatus().rewritten {
			first = p.now
		}
	}
	return describeClass(class, events.VerbObserved, first, []sum{first.fingerprints[0].all}), true
}

// newsOfClass returns the pods with content that the last event does not have, the oldest write first.
func newsOfClass(before *LastEvent, class *Object, pods []podState) []podState {
	recent := before.recentSums()
	var news []podState
	for _, p := range pods {
		// The publisher of a later state has seen this one.
		isKnown := before.UID == string(class.UID) && events.CompareVersions(before.ResourceVersion, p.now.ResourceVersion) >= 0
		if !isKnown && p.isNews(before.KeyID(), recent) {
			news = append(news, p)
		}
	}
	return news
}

// isNews reports whether the pod has received unpublished content. recent has the published contents under the key with the given ID, the current one
// last.
func (p podState) isNews(keyID string, recent []sum) bool {
	now, comparable := under(p.now.fingerprints, keyID)
	if !comparable {
		// The key of the last event was removed from the key file.
		return p.had != nil && p.had[0].all != p.now.fingerprints[0].all
	}
	at := slices.Index(recent, now.all)
	if p.had == nil {
		return at < 0
	}
	had, _ := under(p.had, keyID)
	from := slices.Index(recent, had.all)
	switch {
	case had.all == now.all:
		return false
	case at < 0:
		return true
	case from < 0:
		return at < len(recent)-1
	}
	return from > at
}

func changedClass(before *LastEvent, class *Object, pods, news []podState) events.Change {
	newest := news[len(news)-1].now
	recent := recentUnder(newest.fingerprints[0].keyID, before, pods)
	for _, p := range news {
		told := p.now.fingerprints[0].all
		recent = append(slices.DeleteFunc(recent, func(s sum) bool { return s == told }), told)
	}
	change := describeClass(class, events.VerbChanged, newest, recent[max(0, len(recent)-events.MaxRecent):])
	change.Previous, change.ChangedAt = before.Fingerprint(), newest.ResourceVersion
	setWriters(&change, before, newest)
	return change
}

// recentUnder returns the recent contents under the current key. Under another key, only current and previous contents of pods are known.
func recentUnder(keyID string, before *LastEvent, pods []podState) []sum {
	if before.KeyID() == keyID {
		return slices.Clone(before.recentSums())
	}
	translated := make(map[sum]sum)
	for _, p := range pods {
		for _, content := range [][]fingerprints{p.now.fingerprints, p.had} {
			if old, ok := under(content, before.KeyID()); ok {
				translated[old.all] = content[0].all
			}
		}
	}
	var recent []sum
	for _, old := range before.recentSums() {
		if current, ok := translated[old]; ok {
			recent = append(recent, current)
		}
	}
	return recent
}

// describeClass returns an event for the content that a pod has.
func describeClass(class *Object, verb events.Verb, content *Object, recent []sum) events.Change {
	current := content.fingerprints[0]
	change := events.Change{
		Verb: verb, Source: class.Source, UID: string(class.UID), ResourceVersion: content.ResourceVersion,
		Fingerprint: current.all.Text(current.keyID), Truncated: true,
		Ignore: class.ignore, Match: class.match, WrittenAt: content.written(),
	}
	for _, s := range recent {
		change.Recent = append(change.Recent, s.Text(current.keyID))
	}
	return change
}
