package externalsecret

import (
	"regexp"
	"strconv"
)

// ForceSync is what a value of AnnotationForceSync says that Keyturn has written. It says all in one value, for of what stands on a
// ClusterExternalSecret that is all that reaches the ExternalSecrets which it makes, and the Secrets of these.
type ForceSync struct {
	// Event is the id of the event that the sync is for.
	Event string
	// Repeat counts how often it was asked for again.
	Repeat int
	// Traceparent is the trace of the event, as W3C Trace Context writes it. Empty: it has none.
	Traceparent string
}

// forceSync is the form: what stands behind the last @ tells it from what others write, who mostly write the time.
var forceSync = regexp.MustCompile(`(?s)^(.+?)(?:-r([1-9][0-9]?))?@([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})?$`)

// String is the value. It is the same for the same event, so that a patch that is sent twice asks for one sync.
func (f ForceSync) String() string {
	value := f.Event
	if f.Repeat > 0 {
		value += "-r" + strconv.Itoa(f.Repeat)
	}
	return value + "@" + f.Traceparent
}

// ParseForceSync reads a value. It gives false for one that Keyturn has not written.
func ParseForceSync(value string) (ForceSync, bool) {
	parts := forceSync.FindStringSubmatch(value)
	if parts == nil {
		return ForceSync{}, false
	}
	repeat, _ := strconv.Atoi(parts[2]) // It is two digits, or none.
	return ForceSync{Event: parts[1], Repeat: repeat, Traceparent: parts[3]}, true
}
