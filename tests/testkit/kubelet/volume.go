package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
)

// volume is a folder with the keys of a Secret.
type volume string

// write writes what the Secret has as the kubelet's AtomicWriter does: into a new folder, to which a link then leads instead of to the one before.
// The file of a key is a link through that link.
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

// file is where a pod reads a key.
func (v volume) file(key string) string { return filepath.Join(string(v), key) }
