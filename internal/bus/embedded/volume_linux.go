package embedded

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes returns how many bytes can still be written to the volume of a directory.
func freeBytes(dir string) (int64, error) {
	var volume unix.Statfs_t
	if err := unix.Statfs(dir, &volume); err != nil {
		return 0, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return int64(volume.Bavail) * volume.Bsize, nil
}
