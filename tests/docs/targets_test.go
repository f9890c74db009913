package docs

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// targetsExample is a block of YAML that is a whole file of targets.
var targetsExample = regexp.MustCompile("(?s)```yaml\n(targets:\n.*?)```")

// TestTheExamplesOfTargetsAreRead has the actuator's own reader, which refuses what it does not know.
func TestTheExamplesOfTargetsAreRead(t *testing.T) {
	read := map[string]bool{}
	for _, example := range targetsExample.FindAllStringSubmatch(pages(t)["docs/how-to/custom-resources.md"], -1) {
		file := filepath.Join(t.TempDir(), "targets.yaml")
		testkit.WriteFile(t, file, example[1])
		kinds, err := workload.ReadTargets(file)
		if err != nil {
			t.Errorf("%v in\n%s", err, example[1])
		}
		for _, kind := range kinds {
			read[kind.Name] = true
		}
	}
	for _, name := range []string{"widget", "postgrescluster", "strimzipodset"} {
		if !read[name] {
			t.Errorf("no example has the kind %s", name)
		}
	}
}
