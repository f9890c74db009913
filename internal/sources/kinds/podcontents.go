package kinds

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// PodContents remembers which content of its SecretProviderClass each pod had when it was last compared with the stream, by the UID of the
// podStatus. The content that a pod starts with is not a change, and neither is content that other pods had before. It holds nothing that the next
// watcher needs, and is safe for concurrent use.
type PodContents struct {
	mu  sync.Mutex
	had map[types.UID]podContent
}

// podContent is the content that a pod had.
type podContent struct {
	pod     types.UID
	content []fingerprints // nil if it is unknown: the status had been rewritten before it was first seen, or had no versions
}

// podState is the content of a class that a pod has, and the one that it had.
type podState struct {
	now *Object
	had []fingerprints
}

// NewPodContents returns a memory of no pods.
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
	c.put(now.UID, podContent{pod: status.pod, content: content})
}

// Updated records a new state of a status, or another status of the same name, as after an interrupted watch. If the status is now of another pod,
// or if nothing was mounted before, the content is what a new pod starts with. While a pod has no versions, it has what it had.
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
		c.put(now.UID, podContent{pod: status.pod, content: now.fingerprints})
	}
}

// Removed forgets the status of a pod.
func (c *PodContents) Removed(last *Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.had, last.UID)
}

func (c *PodContents) put(status types.UID, content podContent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.had[status] = content
}

// of returns the states of the pods that have something mounted, the oldest status first. It leaves out a status that the handler has not received
// yet: after that, the class is assessed again.
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

// settle records the current content of the pods as what they had, except for the pods in news, whose content is not on the stream yet.
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
