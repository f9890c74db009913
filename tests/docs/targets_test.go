package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
)

// targetsExample is a block of YAML that is a whole file of targets.
var targetsExample = regexp.MustCompile("(?s)```yaml\n(targets:\n.*?)```")

// TestTheExamplesOfTargetsAreRead has the actuator's own reader, which refuses what it does not know.
func TestTheExamplesOfTargetsAreRead(t *testing.T) {
	read := map[string]bool{}
	for _, example := range targetsExample.FindAllStringSubmatch(pages(t)["docs/targets.md"], -1) {
		file := filepath.Join(t.TempDir(), "targets.yaml")
		if err := os.WriteFile(file, []byte(example[1]), 0o600); err != nil {
			t.Fatal(err)
		}
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
