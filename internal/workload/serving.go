package workload

// serves reports whether the pods of a workload, of which some are of its current template and some are available, have a part that is both.
// While a rollout is in progress it cannot be known which ones are available.
func serves(updated, pods, available int32) bool { return updated == pods && available > 0 }
