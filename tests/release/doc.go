// Package release tests what `make release` makes of this checkout, but for the binaries: tests/image has the image.
package release
