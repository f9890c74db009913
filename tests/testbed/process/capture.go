package process

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
)

// Capture runs a command that ends by itself, and returns its stdout. An error has the end of its stderr, which also goes to where the command has
// it go.
func Capture(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	} else {
		cmd.Stderr = io.MultiWriter(&stderr, cmd.Stderr)
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, tail(stderr.Bytes()))
	}
	return out, nil
}
