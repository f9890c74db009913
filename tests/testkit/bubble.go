package testkit

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// client-go keeps two errors that it logs a millisecond apart, by a time that the whole process shares. In a bubble, whose clock begins in 2000, it
// would sleep until the year of the last error outside. A test that also has a ticker in its bubble would count those years in its ticks.
func init() { //nolint:gochecknoinits // A test that does not know of this runs for hours, or not, as the order of tests has it.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // It is meant to be set.
}
