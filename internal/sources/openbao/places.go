package openbao

// places bounds how many do something at once. It is safe for concurrent use.
type places chan struct{}

func newPlaces(count int) places { return make(places, count) }

// take takes a place. It returns false if there is none.
func (p places) take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

// free gives a place back.
func (p places) free() { <-p }
