// Package process starts programs for tests, and ends them. None outlives the process that started it; on Linux, however that process
// ends. What a program writes goes to a log file that tests can wait on.
package process
