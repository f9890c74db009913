// Package process starts and ends programs for tests. No program outlives the process that started it; on Linux, this holds however
// that process ends. The output of a program goes to a log file, and tests can wait for lines in it.
package process
