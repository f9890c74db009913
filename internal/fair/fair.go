// Package fair shares scarce resources among namespaces: Turns says which namespace is next, and Slots which may take a place.
//
// It imports no other package of this module. Its types belong to the goroutine of a loop.
package fair

import "slices"

// Turns is a queue in which namespaces take turns, so that a namespace with many items delays another one's items by only one each. There may be
// groups of namespaces, which take turns before the namespaces in them do. An item is queued once. Make one with NewTurns.
type Turns[T comparable] struct {
	path   func(T) []string
	queued map[T]struct{}
	root   group[T]
}

// group is a namespace, or a group of namespaces.
type group[T comparable] struct {
	// items are the items of a namespace, in order of arrival.
	items []T
	below map[string]*group[T]
	// order contains each member once, the next one first.
	order []string
}

// NewTurns returns an empty queue. Path returns the groups of an item, the outermost first and its namespace last. They must not change.
func NewTurns[T comparable](path func(T) []string) *Turns[T] {
	return &Turns[T]{path: path, queued: make(map[T]struct{})}
}

// Has reports whether an item is queued.
func (t *Turns[T]) Has(item T) bool {
	_, queued := t.queued[item]
	return queued
}

// Push adds an item. A queued item keeps its place.
func (t *Turns[T]) Push(item T) {
	if t.Has(item) {
		return
	}
	t.queued[item] = struct{}{}
	to := &t.root
	for _, name := range t.path(item) {
		to = to.member(name)
	}
	to.items = append(to.items, item)
}

// Pop removes and returns the first item of the next namespace for which may returns true, or the zero value if there is none. That namespace, and
// each of its groups, then goes to the end.
func (t *Turns[T]) Pop(may func(namespace string) bool) T {
	item, popped := t.root.pop("", may)
	if popped {
		delete(t.queued, item)
	}
	return item
}

// Remove removes an item if it is queued.
func (t *Turns[T]) Remove(item T) {
	if t.Has(item) {
		delete(t.queued, item)
		t.root.remove(item, t.path(item))
	}
}

// member returns a member of the group. A new one goes to the end.
func (g *group[T]) member(name string) *group[T] {
	if g.below == nil {
		g.below = make(map[string]*group[T])
	}
	if g.below[name] == nil {
		g.below[name] = new(group[T])
		g.order = append(g.order, name)
	}
	return g.below[name]
}

func (g *group[T]) pop(namespace string, may func(namespace string) bool) (item T, popped bool) {
	if len(g.items) > 0 && may(namespace) {
		item, g.items[0] = g.items[0], item // clear the reference
		g.items = g.items[1:]
		return item, true
	}
	for i, name := range g.order {
		if item, popped = g.below[name].pop(name, may); popped {
			g.order = append(slices.Delete(g.order, i, i+1), name)
			g.tidy(name)
			return item, true
		}
	}
	return item, false
}

func (g *group[T]) remove(item T, path []string) {
	if len(path) == 0 {
		i := slices.Index(g.items, item)
		g.items = slices.Delete(g.items, i, i+1)
		return
	}
	g.below[path[0]].remove(item, path[1:])
	g.tidy(path[0])
}

// tidy drops a member if it is empty.
func (g *group[T]) tidy(name string) {
	if below := g.below[name]; len(below.items)+len(below.order) == 0 {
		delete(g.below, name)
		g.order = slices.DeleteFunc(g.order, func(turn string) bool { return turn == name })
	}
}

// Slots are places that namespaces share, as the ports of a switch share its memory. A namespace may take one while it has fewer than are free. So a
// single busy namespace gets half of them, each of two gets a third, and a namespace without slots finds a free one, unless there are as many busy
// namespaces as slots. Endless work thus costs another namespace at most half of its slots, never all. Make them with NewSlots.
type Slots struct {
	limit, used int
	alone       bool
	taken       map[string]int
}

// NewSlots returns free slots, limit in number. Alone says that no other namespace needs any, so that the only one may take all.
func NewSlots(limit int, alone bool) *Slots {
	return &Slots{limit: limit, alone: alone, taken: make(map[string]int)}
}

// Free returns the number of free slots. It is negative if more were taken than there are.
func (s *Slots) Free() int { return s.limit - s.used }

// MayTake reports whether a namespace may take a slot.
func (s *Slots) MayTake(namespace string) bool {
	free := s.Free()
	return free > 0 && (s.alone || s.taken[namespace] < free)
}

// Take takes a slot for a namespace, even if it may not.
func (s *Slots) Take(namespace string) {
	s.used++
	s.taken[namespace]++
}

// Return frees a slot that a namespace has taken.
func (s *Slots) Return(namespace string) {
	s.used--
	if s.taken[namespace]--; s.taken[namespace] == 0 {
		delete(s.taken, namespace)
	}
}
