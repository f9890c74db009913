package workload

// WantReason explains why a workload rolls on a source, or why not.
type WantReason int

// The reasons. Those for rolling come last, in the order in which they are tried.
const (
	// NotWanted means that no annotation is about the source.
	NotWanted WantReason = iota
	// Excluded means that an annotation excludes the source.
	Excluded
	// OnlyPulled means that only image pulls use the source, and that no annotation names it.
	OnlyPulled
	// KeyNotRead means that the annotations name keys of the source that the pod spec does not read.
	KeyNotRead
	// byName means that an annotation names the source, exactly or by a pattern.
	byName
	// bySearch means that the workload searches for sources with the match annotation, and references this one, which has it.
	bySearch
	// byAuto means that the workload rolls on everything that its pod spec references.
	byAuto
	// byAll means that --roll-all makes every workload roll on everything that its pod spec references.
	byAll
)

// String returns the name in kebab-case.
func (r WantReason) String() string {
	switch r {
	case NotWanted:
		return "not-wanted"
	case Excluded:
		return "excluded"
	case OnlyPulled:
		return "pulled-only"
	case KeyNotRead:
		return "key-not-read"
	case byName:
		return "by-name"
	case bySearch:
		return "by-search"
	case byAuto:
		return "by-auto"
	case byAll:
		return "by-all"
	}
	return "unknown"
}

// Want says whether a workload rolls on a source, and why.
type Want struct {
	Reason WantReason
	// Keys are the data keys that matter, sorted. Nil means all of them. If the source is wanted, Keys is nil or not empty.
	Keys []string
	// Annotation and Item are what decided. They are empty for NotWanted and --roll-all.
	Annotation string
	Item       string
}

// Wanted reports whether the workload rolls on the source.
func (w Want) Wanted() bool { return w.Reason >= byName }
