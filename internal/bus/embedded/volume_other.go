//go:build !linux

package embedded

import "errors"

// freeBytes is not implemented: the programs run on Linux.
func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
