// Package build builds the servers of the test bed and the programs under test, and keeps the binaries in the user's cache folder.
package build
