package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// pagePath is where `make demo-secrets` leaves the page of its rotations.
const pagePath = "bin/rotations.html"

// drawRotations returns the end of a demo that writes a page of its rotations to a path.
func drawRotations(path string) func(context.Context, *stage, *report) error {
	return func(ctx context.Context, s *stage, out *report) error {
		out.begin(0, "Draw the rotations")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		said, err := exec.CommandContext(ctx, s.programs.KeyturnBinary(), "timeline", "--all-namespaces", "--since", "1h", "--file", path,
			"--cluster", cluster, "--nats-url", s.programs.NATSURL(), "--kubeconfig", s.plane.Kubeconfig()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubectl keyturn timeline: %w: %s", err, said)
		}
		out.line("look", "%s shows each change above, from the write to the last ready pod: open it in a browser", path)
		return nil
	}
}
