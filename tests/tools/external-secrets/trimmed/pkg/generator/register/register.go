// Package register has the operator know no generator. Upstream's file of this name imports all of them, with the SDK of each cloud.
package register
