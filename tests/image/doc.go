// Package image tests the container image as it is shipped: it has `make image` build the archive, unpacks it, and runs what is
// in it.
package image
