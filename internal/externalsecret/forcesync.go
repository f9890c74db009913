package externalsecret

import (
	"regexp"
	"strconv"
)

// ForceSync is a value of AnnotationForceSync that Keyturn has written. One value holds everything, because no other
// annotation of a ClusterExternalSecret reaches its ExternalSecrets and their Secrets.
type ForceSync struct {
	Event       string // the id of the event that the sync is for
	Repeat      int    // counts the repeated requests
	Traceparent string // the W3C traceparent of the event; empty if it has no trace
}

// forceSync is the form of a value. The part after the last @ distinguishes it from values of other writers, which are mostly times.
var forceSync = regexp.MustCompile(`(?s)^(.+?)(?:-r([1-9][0-9]?))?@([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})?$`)

// String returns the value. It is the same for the same event, so that a patch that is sent twice causes one sync.
func (f ForceSync) String() string {
	value := f.Event
	if f.Repeat > 0 {
		value += "-r" + strconv.Itoa(f.Repeat)
	}
	return value + "@" + f.Traceparent
}

// ParseForceSync reads a value. It returns false for a value that Keyturn has not written.
func ParseForceSync(value string) (ForceSync, bool) {
	parts := forceSync.FindStringSubmatch(value)
	if parts == nil {
		return ForceSync{}, false
	}
	repeat, _ := strconv.Atoi(parts[2]) // at most two digits
	return ForceSync{Event: parts[1], Repeat: repeat, Traceparent: parts[3]}, true
}
