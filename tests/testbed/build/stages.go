package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// PodStages selects how the pods of the fake nodes come and go.
type PodStages string

const (
	// PodsFast makes a scheduled pod ready, and a deleted one disappear, within milliseconds.
	PodsFast PodStages = "fast"
	// PodsGeneral makes a pod go through its creation and its init containers, with a second or more at every step.
	PodsGeneral PodStages = "general"
)

// stageFiles are the stages of kwok's own module that a control plane plays. kwok has none built in and does not
// start without.
func stageFiles(pods PodStages) []string {
	files := []string{"node/fast/node-initialize.yaml", "node/heartbeat/node-heartbeat.yaml"}
	switch pods {
	case PodsGeneral:
		return append(files,
			"pod/general/pod-create.yaml",
			"pod/general/pod-init-container-running.yaml",
			"pod/general/pod-init-container-completed.yaml",
			"pod/general/pod-ready.yaml",
			"pod/general/pod-complete.yaml",
			"pod/general/pod-delete.yaml")
	default:
		return append(files,
			"pod/fast/pod-ready.yaml",
			"pod/fast/pod-complete.yaml",
			"pod/fast/pod-delete.yaml")
	}
}

// extractStages writes the stages next to kwok's binary, one file per kind of pod stages.
func extractStages(moduleDir, dir string) error {
	for _, pods := range []PodStages{PodsFast, PodsGeneral} {
		var all bytes.Buffer
		for _, name := range stageFiles(pods) {
			stage, err := os.ReadFile(filepath.Join(moduleDir, "kustomize", "stage", filepath.FromSlash(name)))
			if err != nil {
				return fmt.Errorf("read a stage of kwok: %w", err)
			}
			all.Write(stage)
			all.WriteString("\n---\n")
		}
		if err := os.WriteFile(StagesPath(dir, pods), all.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write the stages of kwok: %w", err)
		}
	}
	return nil
}

// StagesPath returns the file of the stages in the folder of kwok's binary.
func StagesPath(dir string, pods PodStages) string {
	return filepath.Join(dir, "stages-"+string(pods)+".yaml")
}
