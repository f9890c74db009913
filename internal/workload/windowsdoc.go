// Package window computes when the windows in which workloads may be rolled are open: "0 1 * * 1-5 for 3h Europe/Berlin". It is pure.
//
// The fields of cron refer to the wall clock of a time zone, and the duration is elapsed time. An opening at a time that the wall clock skips is
// at the end of the gap, and an opening at a time that it shows twice is at the first of the two. See
// docs/adr/0029-what-waits-for-people-waits-on-the-stream.md.
package workload
