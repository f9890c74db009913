package fair

// Slots are places that namespaces share. A namespace may take one while it has fewer than are free. So a single busy namespace gets half of them,
// each of two gets a third, and one that has none finds a free one, unless there are as many busy namespaces as slots. What never ends thus costs
// another namespace at most half of its own slots, never all. Make them with NewSlots.
type Slots struct {
	limit, used int
	alone       bool
	taken       map[string]int
}

// NewSlots returns a number of free slots. Alone says that there is no other namespace that needs one: the only one may take all.
func NewSlots(limit int, alone bool) *Slots {
	return &Slots{limit: limit, alone: alone, taken: make(map[string]int)}
}

// Free returns how many are free. It is negative if more were taken than there are.
func (s *Slots) Free() int { return s.limit - s.used }

// TakenBy returns how many a namespace has taken.
func (s *Slots) TakenBy(namespace string) int { return s.taken[namespace] }

// MayTake reports whether a namespace may take one.
func (s *Slots) MayTake(namespace string) bool {
	free := s.Free()
	return free > 0 && (s.alone || s.taken[namespace] < free)
}

// Take takes one for a namespace, even if it may not.
func (s *Slots) Take(namespace string) {
	s.used++
	s.taken[namespace]++
}

// Return makes one free that a namespace has taken.
func (s *Slots) Return(namespace string) {
	s.used--
	if s.taken[namespace]--; s.taken[namespace] == 0 {
		delete(s.taken, namespace)
	}
}
