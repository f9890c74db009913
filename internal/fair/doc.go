// Package fair shares what is scarce among namespaces: Turns says who is next, and Slots who may take a place.
//
// It imports no other package of this module. Its types belong to the goroutine of a loop.
package fair
