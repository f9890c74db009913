// Package reloader translates the flags and environment of Stakater's Reloader 1.4 to the options of a process that runs the watcher and the
// actuator. It is pure: it reads no file and opens no connection.
//
// Names, defaults and precedence are Reloader's. A setting that cannot have the same effect as in Reloader is refused by name, with what
// to use instead, so an accepted setting does what it says.
package reloader
