package kinds

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// PodContents remembers, by the UID of the podStatus, the content of its SecretProviderClass that each pod had at the last comparison with the
// stream. The content that a pod starts with is not a change, and neither is earlier content of other pods. It has nothing that the next watcher
// needs, and is safe for concurrent use.
type PodContents struct {
	mu  sync.Mutex
	had map[types.UID]podContent
}

// podContent is the previous content of a pod.
type podContent struct {
	pod     types.UID
	content []fingerprints // nil if unknown, because the status was rewritten before it was first seen, or had no versions
}

// podState is the current content of a class in a pod, and the previous one.
type podState struct {
	now *Object
	had []fingerprints
}

// NewPodContents returns an empty PodContents.
func NewPodContents() *PodContents { return &PodContents{had: make(map[types.UID]podContent)} }

// Added records the status of a pod that is seen for the first time. Like Updated and Removed, it ignores objects of other kinds.
func (c *PodContents) Added(now *Object) {
	status := now.podStatus()
	if status == nil {
		return
	}
	content := now.fingerprints
	if status.rewritten {
		content = nil
	}
	c.put(now, content)
}

// Updated records a new state of a status, or another status with the name, as after an interrupted watch. If the status now belongs to another pod,
// or if nothing was mounted before, a new pod starts with the content. A status without versions does not change the content of its pod.
func (c *PodContents) Updated(before, now *Object) {
	status, earlier := now.podStatus(), before.podStatus()
	if status == nil || earlier == nil {
		return
	}
	if before.UID != now.UID {
		c.Removed(before)
	}
	isStart := before.fingerprints == nil && !earlier.unversioned
	if before.UID != now.UID || status.pod != earlier.pod || isStart {
		c.put(now, now.fingerprints)
	}
}

// Removed forgets the status of a pod.
func (c *PodContents) Removed(last *Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.had, last.UID)
}

func (c *PodContents) put(now *Object, content []fingerprints) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.had[now.UID] = podContent{pod: now.podStatus().pod, content: content}
}

// of returns the states of pods that have something mounted, the oldest status first. It omits a status that the handler has not received yet: the
// class is assessed again after that.
func (c *PodContents) of(statuses []*Object) []podState {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []podState
	for _, now := range statuses {
		known, ok := c.had[now.UID]
		if ok && now.fingerprints != nil && known.pod == now.podStatus().pod {
			list = append(list, podState{now: now, had: known.content})
		}
	}
	slices.SortFunc(list, func(a, b podState) int { return events.CompareVersions(a.now.ResourceVersion, b.now.ResourceVersion) })
	return list
}

// settle records the current content of the pods as the previous one, except for the pods in news, whose content is not on the stream yet.
func (c *PodContents) settle(pods, news []podState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pods {
		isNews := slices.ContainsFunc(news, func(n podState) bool { return n.now == p.now })
		if known, ok := c.had[p.now.UID]; ok && !isNews && known.pod == p.now.podStatus().pod {
			c.had[p.now.UID] = podContent{pod: known.pod, content: p.now.fingerprints}
		}
	}
}
