package actuate

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// simulatedSource is a source, what the stream has of it, and what the pods have of it.
type simulatedSource struct {
	events.Source
	ref     workload.Reference
	uid     int
	version int
	data    map[string]string // nil: there is none

	// event is the last on the stream, and said its content. Sent is whether it was delivered, and acked whether it is finished.
	event       events.Change
	said        map[string]string
	sent, acked bool
	// seq is its sequence, and storedAt the version at which it was stored. Superseded are those before it.
	seq        uint64
	storedAt   int
	superseded []*events.Delivery
	// contents is what the workload reads, by the ID of the event that reports it, and publishedAt is when it was first reported.
	contents    map[string]string
	publishedAt map[string]int

	// told is what the workload reads according to the last event, and toldAt the version at which that changed. Had and hadAt are the same as of
	// the last event that was no deletion.
	told, had     string
	toldAt, hadAt int
	// changedAt is when the content that the pods read last changed.
	changedAt int
	// pods is what the pods read when they started.
	pods string
	// podsEvent is the ID of the event that reported it, empty if none did.
	podsEvent string
	// decided are the events that the actuator decided about. Others were superseded before it did.
	decided map[string]bool
	// strayed says that the actuator lost track of whether the pods started before or after a change.
	strayed bool
	// lost says that the stream forgot the source. LostUID is the object that existed then, 0 if none did.
	lost    bool
	lostUID int
	// unknown says that the source had changed since the pods started when it was first seen again, or when it changed again after the actuator had
	// begun, and that the workload had no record.
	unknown bool
	// unlinked says that the actuator forgot since when the workload wants the source, before it had decided about it.
	unlinked bool
}

// last returns a delivery of the last event.
func (source *simulatedSource) last() *events.Delivery {
	return &events.Delivery{Change: source.event, Seq: source.seq, StoredAt: timeOf(source.storedAt)}
}

// contentOf returns a source's content as text.
func contentOf(data map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(&b, "%s=%q ", name, data[name])
	}
	return b.String()
}

// printsOf returns the fingerprints of a source's content: of each key, and of all.
func printsOf(data map[string]string) (keys map[string]events.Key, all string) {
	sum := func(text string) string {
		digest := fnv.New128a()
		digest.Write([]byte(text))
		return fmt.Sprintf("k0a1b2c3d:%x", digest.Sum(nil))
	}
	keys = make(map[string]events.Key, len(data))
	for name, value := range data {
		keys[name] = events.Key{Fingerprint: sum(name + "=" + value)}
	}
	return keys, sum(contentOf(data))
}

// read returns what pods that start now read of a source, and false if they do not start.
func (source *simulatedSource) read() (string, bool) {
	if source.data == nil {
		return "absent", source.ref.Optional
	}
	read := maps.Clone(source.data)
	if source.ref.Keys != nil {
		maps.DeleteFunc(read, func(name, _ string) bool { return !slices.Contains(source.ref.Keys, name) })
	}
	return contentOf(read), !slices.ContainsFunc(source.ref.Required, func(name string) bool { _, there := read[name]; return !there })
}
