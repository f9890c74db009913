package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pagePath is where `make demo-secrets` leaves the page of its rotations.
const pagePath = "bin/rotations.html"

// drawRotations returns the end of a demo that writes a page of its rotations to a path.
func drawRotations(path string) func(context.Context, *stage, *report) error {
	return func(ctx context.Context, s *stage, out *report) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		out.begin(0, "Draw the rotations")
		command := "actuator history --since 1h --output html"
		args := append(strings.Fields(command)[1:], "--cluster", cluster, "--nats-url", s.programs.NATSURL())
		page, err := exec.CommandContext(ctx, s.programs.ActuatorBinary(), args...).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		if err := os.WriteFile(path, page, 0o644); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		out.line("look", "%s shows each change above, from the write to the last ready pod: open it in a browser", path)
		return nil
	}
}
