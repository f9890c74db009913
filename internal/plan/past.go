package plan

import "github.com/keyturn/keyturn/internal/events"

// Past is what is known of the time before an event. The zero value knows nothing.
type Past struct {
	// From is the content before the first change that is not decided yet. Nil: it is not known.
	From *events.Change
}
