//go:build !unix

package program

import "os"

// flock locks nothing: the programs run on Linux, and elsewhere they are only in the binary of people's commands.
func flock(*os.File) error { return nil }

// isPrivate reports true: elsewhere each user has a temporary directory of their own.
func isPrivate(string) bool { return true }
