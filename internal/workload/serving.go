package workload

// serves reports whether some pods of a workload are both of its current template and available. While pods of different templates exist,
// the status does not tell which ones are available.
func serves(updated, pods, available int32) bool { return updated == pods && available > 0 }
