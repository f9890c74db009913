package testbed

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Inputs opens all files below paths, for a test that has another program read them: the go tool keeps the result of a test
// for as long as the files are the same that the test itself has opened. It is to be called by a test, for what TestMain opens is
// not counted.
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
