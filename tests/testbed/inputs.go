package testbed

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Inputs opens all files below paths. It is for tests that let another program read these files: the go command caches the result
// of a test as long as the files that the test itself has opened are unchanged. It must be called by a test, because files opened
// by TestMain do not count.
func Inputs(paths ...string) error {
	for _, path := range paths {
		err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			return file.Close()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
