package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// reserve is the inverse of the part of the volume that is kept free of messages. Deleted messages take up space until their file is
// compacted, which writes the rest of the file a second time.
const reserve = 8

// storeLimit returns how many bytes of messages a store may hold: what its files occupy plus what is free, less the reserve. Whatever is
// stored, it is the same before and after a restart, and it grows with the volume.
//
// The server's own limit would be three quarters of the free space and the stored data at its start. It would not change when the volume is enlarged.
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

func occupiedBytes(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // The server removes files all the time.
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading the size of %s: %w", dir, err)
	}
	return sum, nil
}
