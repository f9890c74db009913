package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// checksums returns the SHA-256 of each file, as sha256sum --check reads them.
func (r release) checksums() ([]byte, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, entry := range entries {
		content, err := os.ReadFile(r.path(entry.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "%s  %s\n", sha256Hex(content), entry.Name())
	}
	return all.Bytes(), nil
}

func sha256Hex(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
