package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// trim overwrites files of the server's downloaded module with those in the folder that s.trimmed names, so that the build leaves out packages.
// The go command accepts no overlay for a module.
func (s server) trim(ctx context.Context, module string) error {
	if s.trimmed == "" {
		return nil
	}
	tools, err := s.toolsDir(ctx)
	if err != nil {
		return err
	}
	files := os.DirFS(filepath.Join(filepath.Dir(tools), filepath.FromSlash(s.trimmed)))
	if err := overwrite(module, files); err != nil {
		return fmt.Errorf("trim %s: %w", s.module, err)
	}
	return nil
}

// overwrite replaces files in a folder. It returns an error if the folder does not have one of them.
func overwrite(dir string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		// Downloaded files are read-only.
		replaced := filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(err, os.Remove(replaced)); err != nil {
			return err
		}
		return os.WriteFile(replaced, content, 0o644)
	})
}
