package plan

// Waiting is what ends a hold.
type Waiting int

const (
	// NotWaiting means that the reason holds nothing.
	NotWaiting Waiting = iota
	// ForPeople means a time that people have chosen, or something that they do.
	ForPeople
	// ForItself means something of the workload's own: its patch, its pods, its kind, or its time.
	ForItself
	// ForSlot means a slot for a rollout.
	ForSlot
	// ForPeers means other workloads of its namespace.
	ForPeers
	// ForAny means that any event in its namespace may end it.
	ForAny
)

// waitings says for each reason to hold a workload what ends the hold.
var waitings = map[Reason]Waiting{
	PodsStarting:   ForItself,
	Busy:           ForItself,
	KindNotServed:  ForItself,
	Limit:          ForSlot,
	NamespaceLimit: ForSlot,
	PeerFailed:     ForPeers,
	CanaryFirst:    ForPeers,
	LowerWave:      ForPeers,
	OnHold:         ForPeople,
	SourceOnHold:   ForPeople,
	WindowClosed:   ForPeople,
	RolledRecently: ForPeople,
	RolledTooOften: ForPeople,
	Pausing:        ForPeople,
	ReloaderFirst:  ForItself,
	FilesPending:   ForAny,
	Aborted:        ForAny,
}

// Waiting returns what ends a hold for this reason.
func (r Reason) Waiting() Waiting { return waitings[r] }
