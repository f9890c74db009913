package build

import (
	"fmt"
	"os"
)

const (
	// kubernetesVariable is the environment variable that chooses the release of Kubernetes: "oldest", or the newest if it is empty.
	kubernetesVariable = "KEYTURN_TEST_KUBERNETES"
	// assetsVariable is the environment variable with a folder of binaries to use instead.
	assetsVariable = "KUBEBUILDER_ASSETS"
	oldest         = "oldest"
)

// OldestKubernetes reports whether the programs of Kubernetes are those of the oldest release that docs/compatibility.md names, because
// KEYTURN_TEST_KUBERNETES is oldest, and not those of the newest.
func OldestKubernetes() bool { return os.Getenv(kubernetesVariable) == oldest }

// checkEnvironment refuses what would test another Kubernetes than the one that was asked for.
func checkEnvironment() error {
	switch chosen := os.Getenv(kubernetesVariable); {
	case chosen != "" && chosen != oldest:
		return fmt.Errorf("%s=%s: want %s, or nothing for the newest", kubernetesVariable, chosen, oldest)
	case chosen == oldest && os.Getenv(assetsVariable) != "":
		return fmt.Errorf("%s=%s and %s exclude each other: unset one of them", kubernetesVariable, oldest, assetsVariable)
	}
	return nil
}
