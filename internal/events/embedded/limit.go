package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// reserve is the part of the volume that messages leave free: 1/reserve. Deleted messages take space until their file is compacted,
// which writes the rest of it a second time.
const reserve = 8

// storeLimit returns how many bytes of messages a store may hold: what its files occupy and what is free, less the reserve. It is the
// same before and after a restart, whatever is stored, and grows with the volume.
//
// The server's own limit is three quarters of what is free when it starts, and of what it then has. It stays the same when the volume
// is enlarged.
func storeLimit(dir string, free func(dir string) (int64, error)) (int64, error) {
	left, err := free(dir)
	if err != nil {
		return 0, err
	}
	occupied, err := occupiedBytes(dir)
	if err != nil {
		return 0, err
	}
	room := occupied + left
	return room - room/reserve, nil
}

// occupiedBytes returns the size of all files below a directory.
func occupiedBytes(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreMissing(err)
	})
	if err != nil {
		return 0, fmt.Errorf("reading the size of %s: %w", dir, err)
	}
	return sum, nil
}

// ignoreMissing ignores that a file was removed meanwhile, as the server does all the time.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
