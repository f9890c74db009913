package actuate

// ordered is a heap: see container/heap.
type ordered[T any] struct {
	items []T
	less  func(a, b T) bool
	// moved is called with the new place of an item, or with -1 when it is taken out. It may be nil.
	moved func(item T, place int)
}

// Len is called by container/heap, as the following are.
func (o *ordered[T]) Len() int { return len(o.items) }

// Less reports whether an item comes before another one.
func (o *ordered[T]) Less(i, j int) bool { return o.less(o.items[i], o.items[j]) }

// Swap swaps two items.
func (o *ordered[T]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	o.move(o.items[i], i)
	o.move(o.items[j], j)
}

// Push adds an item at the end.
func (o *ordered[T]) Push(x any) {
	if item, ok := x.(T); ok {
		o.move(item, len(o.items))
		o.items = append(o.items, item)
	}
}

// Pop takes the last item out.
func (o *ordered[T]) Pop() any {
	last := len(o.items) - 1
	item := o.items[last]
	o.move(item, -1)
	clear(o.items[last:]) // so that nothing of it is kept
	o.items = o.items[:last]
	return item
}

func (o *ordered[T]) move(item T, place int) {
	if o.moved != nil {
		o.moved(item, place)
	}
}
