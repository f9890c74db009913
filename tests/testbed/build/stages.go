package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// stageFiles are the files of kwok's module with the stages that a control plane plays: within milliseconds, a scheduled pod becomes
// ready and a deleted one is gone. kwok has no built-in stages, and does not start without any.
var stageFiles = []string{
	"node/fast/node-initialize.yaml", "node/heartbeat/node-heartbeat.yaml",
	"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
}

// extractStages writes the stages next to kwok's binary.
func extractStages(moduleDir, dir string) error {
	var all bytes.Buffer
	for _, name := range stageFiles {
		stage, err := os.ReadFile(filepath.Join(moduleDir, "kustomize", "stage", filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("read a stage of kwok: %w", err)
		}
		all.Write(stage)
		all.WriteString("\n---\n")
	}
	if err := os.WriteFile(StagesPath(dir), all.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the stages of kwok: %w", err)
	}
	return nil
}

// StagesPath returns the file of the stages in the folder of kwok's binary.
func StagesPath(dir string) string { return filepath.Join(dir, "stages-fast.yaml") }
