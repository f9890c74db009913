// Package image tests the container image as shipped: it builds the archive with `make image`, unpacks it, and runs its programs.
package image
