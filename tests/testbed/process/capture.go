package process

import (
	"bytes"
	"fmt"
	"os/exec"
)

// Capture runs a command that ends by itself, and returns its stdout. An error has the end of its stderr.
func Capture(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, tail(stderr.Bytes()))
	}
	return out, nil
}
