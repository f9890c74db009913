package forcesync

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// registry has every pending sync.
type registry struct {
	byKey    group
	bySecret map[types.NamespacedName]group
	// byTarget has the pending syncs by what their ExternalSecrets write.
	byTarget map[events.Source]group
}

type group map[key]*pendingSync

func newRegistry() registry {
	return registry{byKey: make(group), bySecret: make(map[types.NamespacedName]group), byTarget: make(map[events.Source]group)}
}

func (r *registry) add(s *pendingSync) {
	r.byKey[s.key] = s
	join(r.bySecret, s.key.secret, s)
}

func (r *registry) remove(s *pendingSync) {
	delete(r.byKey, s.key)
	leave(r.bySecret, s.key.secret, s)
	leave(r.byTarget, s.seen.Target, s)
}

// see records the last seen state of a sync's ExternalSecret. byTarget then finds the sync by what that state writes.
func (r *registry) see(s *pendingSync, es *externalsecret.ExternalSecret) {
	leave(r.byTarget, s.seen.Target, s)
	s.seen = es
	join(r.byTarget, es.Target, s)
}

func join[K comparable](groups map[K]group, name K, s *pendingSync) {
	if groups[name] == nil {
		groups[name] = make(group)
	}
	groups[name][s.key] = s
}

func leave[K comparable](groups map[K]group, name K, s *pendingSync) {
	delete(groups[name], s.key)
	if len(groups[name]) == 0 {
		delete(groups, name)
	}
}
