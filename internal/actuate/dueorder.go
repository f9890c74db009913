package actuate

// dueOrder is a heap of the workloads that wait for a time, the next one first: see container/heap. Each knows its position.
type dueOrder []*pending

// Len is called by container/heap, as the following are.
func (o dueOrder) Len() int { return len(o) }

// Less reports whether a workload is due before another one. If both are due at the same time, the one that has waited longer is first.
func (o dueOrder) Less(i, j int) bool {
	if o[i].due.Equal(o[j].due) {
		return o[i].first.Before(o[j].first)
	}
	return o[i].due.Before(o[j].due)
}

// Swap swaps two workloads.
func (o dueOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].position, o[j].position = i, j
}

// Push adds a workload at the end.
func (o *dueOrder) Push(x any) {
	if p, ok := x.(*pending); ok {
		p.position = len(*o)
		*o = append(*o, p)
	}
}

// Pop takes the last workload out.
func (o *dueOrder) Pop() any {
	last := len(*o) - 1
	p := (*o)[last]
	p.position, (*o)[last] = -1, nil // so that nothing of it is kept
	*o = (*o)[:last]
	return p
}
