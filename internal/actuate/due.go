package actuate

// dueOrder is the heap of the debounce window: see container/heap. Of two workloads that are due at once, the one that has waited
// longer is first.
type dueOrder []*pending

func (o dueOrder) Len() int { return len(o) }

func (o dueOrder) Less(i, j int) bool {
	if o[i].due.Equal(o[j].due) {
		return o[i].first.Before(o[j].first)
	}
	return o[i].due.Before(o[j].due)
}

func (o dueOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].position, o[j].position = i, j
}

// Push is called by container/heap.
func (o *dueOrder) Push(x any) {
	if p, ok := x.(*pending); ok {
		p.position = len(*o)
		*o = append(*o, p)
	}
}

// Pop is called by container/heap.
func (o *dueOrder) Pop() any {
	last := len(*o) - 1
	p := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	p.position = -1
	return p
}
