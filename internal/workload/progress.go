package workload

// State is how far a rollout is.
type State int

const (
	// Progressing means that pods are still to be replaced.
	Progressing State = iota
	// Complete means that all pods are of the current template, and ready.
	Complete
	// Failed means that the workload's controller has given up.
	Failed
	// Waiting means that someone has told the workload's controller to wait, and nothing happens until they tell it to go on.
	Waiting
)

// Progress is how far the rollout of a workload's current template is, according to its status.
type Progress struct {
	State State
	// Message says more, for people.
	Message string
	// Pods is how many pods the workload is to have. A rollout of none needs no slot among the rollouts in progress.
	Pods int32
}
