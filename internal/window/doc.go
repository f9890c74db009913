// Package window says when the windows are open in which workloads may be rolled: "0 1 * * 1-5 for 3h Europe/Berlin". It is pure.
//
// The fields of cron are of the clock on the wall of a zone, and the duration is elapsed time. An opening that the wall clock skips is when it goes
// on, and one that it shows twice is the first of the two. See docs/adr/0029-what-waits-for-people-waits-on-the-stream.md.
package window
