package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
)

// volume is a folder with the keys of a Secret.
type volume string

// write writes the data of the Secret like the kubelet's AtomicWriter: into a new folder, to which it then redirects a symbolic link. The file of
// a key is a symbolic link through that one.
func (v volume) write(data map[string][]byte) error {
	next, err := os.MkdirTemp(string(v), "..")
	if err != nil {
		return fmt.Errorf("writing a volume: %w", err)
	}
	for key, value := range data {
		if err := os.WriteFile(filepath.Join(next, key), value, 0o600); err != nil {
			return fmt.Errorf("writing a volume: %w", err)
		}
	}
	current, link := filepath.Join(string(v), "..data"), filepath.Join(string(v), "..data_tmp")
	before, _ := os.Readlink(current)
	if err := os.Symlink(filepath.Base(next), link); err != nil {
		return fmt.Errorf("writing a volume: %w", err)
	}
	if err := os.Rename(link, current); err != nil {
		return fmt.Errorf("writing a volume: %w", err)
	}
	for key := range data {
		if err := os.Symlink(filepath.Join("..data", key), v.file(key)); err != nil && !os.IsExist(err) {
			return fmt.Errorf("writing a volume: %w", err)
		}
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(string(v), before))
}

// file returns the path at which a pod reads a key.
func (v volume) file(key string) string { return filepath.Join(string(v), key) }
