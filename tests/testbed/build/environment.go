package build

import (
	"fmt"
	"os"
)

const (
	// versionsVariable is the environment variable that chooses the releases of Kubernetes, Helm, NATS and External Secrets: "oldest", or the newest
	// if it is empty.
	versionsVariable = "KEYTURN_TEST_VERSIONS"
	// assetsVariable is the environment variable with a folder of binaries to use instead.
	assetsVariable = "KUBEBUILDER_ASSETS"
	oldest         = "oldest"
	// raceVariable is the environment variable that make test-nightly sets.
	raceVariable = "KEYTURN_TEST_RACE"
)

// Oldest reports whether KEYTURN_TEST_VERSIONS is oldest: Kubernetes, Helm, NATS and External Secrets are then of the oldest releases
// that docs/reference/compatibility.md names, and otherwise of the newest.
func Oldest() bool { return os.Getenv(versionsVariable) == oldest }

// Race reports whether the programs that tests start have the race detector, which takes several times the processor time.
func Race() bool { return os.Getenv(raceVariable) != "" }

// checkEnvironment returns an error if the environment would use another Kubernetes than the one that it selects.
func checkEnvironment() error {
	switch chosen := os.Getenv(versionsVariable); {
	case chosen != "" && chosen != oldest:
		return fmt.Errorf("%s=%s: want %s, or nothing for the newest", versionsVariable, chosen, oldest)
	case chosen == oldest && os.Getenv(assetsVariable) != "":
		return fmt.Errorf("%s=%s and %s exclude each other: unset one of them", versionsVariable, oldest, assetsVariable)
	}
	return nil
}
