package workload

import (
	"hash/maphash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parsed contains the parts of a snapshot that a write of the status does not change. Most watch events are such writes, and these parts take the
// longest to read: the pod template is encoded and hashed twice, and the record, the mark and managedFields are decoded. All states of a workload
// with equal parts share it, so it must not change.
type parsed struct {
	// generation is the object's generation, and metadata the hash of its metadata.
	generation int64
	metadata   uint64

	wishes
	// problems are the problems of the opt-in.
	problems       []error
	rolled         map[string]RolledFor
	ours           bool
	last           Last
	template, bare digest
}

// parse parses an object, or returns the result of an earlier state, which may be nil, if only the status was written since.
func (k Kind) parse(p parts, reading Reading, earlier *Workload) *parsed {
	if !k.countsChanges {
		return parse(p, reading)
	}
	generation, metadata := p.meta.Generation, hashOf(p.meta)
	if earlier != nil && earlier.ID.UID == string(p.meta.UID) && earlier.parsed.isAt(generation, metadata) {
		return earlier.parsed
	}
	made := parse(p, reading)
	made.generation, made.metadata = generation, metadata
	return made
}

// isAt reports whether the same object gives the same result. Without a generation, as in a test, it does not.
func (p *parsed) isAt(generation int64, metadata uint64) bool {
	return p != nil && generation > 0 && p.generation == generation && p.metadata == metadata
}

// parse parses an object. It depends on no metadata that hashOf leaves out, or that changes only with the UID.
func parse(p parts, reading Reading) *parsed {
	made := &parsed{wishes: wishes{Refs: References(p.template)}, last: readLast(p.meta), template: digestOf(p.template)}
	made.rolled, made.ours = readRecord(p.meta)
	made.bare = made.template
	if rolled := bare(p.template); rolled != p.template {
		made.bare = digestOf(rolled)
	}
	if !p.Deaf {
		made.OptIn, made.problems = parseOptIn(p.meta.Annotations, p.template.Annotations, reading)
		made.problems = append(made.problems, made.OptIn.grant(reading.Stores.of(p.meta.Namespace), made.Refs)...)
	}
	return made
}

// metadataSeed is chosen at startup, so that nobody can craft two texts with the same hash.
var metadataSeed = maphash.MakeSeed()

// ownWrite is the content of an entry of managedFields about writes to the object itself. Fields is a hash.
type ownWrite struct {
	manager, operation string
	isTimed            bool
	at                 int64
	fields             uint64
}

// hashOf returns a hash of the annotations, and of managedFields without writes of the status. Different ones collide with a probability of 2^-64.
func hashOf(meta *metav1.ObjectMeta) uint64 {
	var annotations uint64 // a sum, because a map has no order
	for name, text := range meta.Annotations {
		annotations += maphash.Comparable(metadataSeed, annotation{name, text})
	}
	var h maphash.Hash
	h.SetSeed(metadataSeed)
	maphash.WriteComparable(&h, annotations)
	maphash.WriteComparable(&h, len(meta.ManagedFields) == 0) // A record without managedFields counts as the actuator's own: see isOurs.
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if entry.Subresource != "" {
			continue
		}
		w := ownWrite{
			manager: entry.Manager, operation: string(entry.Operation), isTimed: entry.Time != nil,
			fields: maphash.Bytes(metadataSeed, entry.FieldsV1.GetRawBytes()),
		}
		if w.isTimed {
			w.at = entry.Time.UnixNano()
		}
		maphash.WriteComparable(&h, w)
	}
	return h.Sum64()
}

// parseOptIn reads the annotations of a workload and its pod template. With Reading.All, it includes the references of the pod spec, unless the
// annotations say otherwise. Each invalid item gives one *itemError, at most maxItemErrors for each annotation. The other items still count.
func parseOptIn(workload, template map[string]string, reading Reading) (OptIn, []error) {
	var r rules
	if lists := r.readRollOn(workload, template); !r.none {
		reloaderReader{&r, reading.keys(), reading.Reloader}.read(workload, template, reading.All && !lists)
		slices.SortStableFunc(r.include, rule.compare)
	}
	return r.OptIn, r.list()
}
