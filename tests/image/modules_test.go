package image

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// checkModules compares the modules that are linked into the programs with the list in testdata, so that a review sees what comes in with an update,
// and into which program. go.mod has their versions, and also what only tests need. What is right is written with:
//
//	go test ./tests/image -update
func checkModules(t *testing.T, binaries string) {
	t.Helper()
	linked := map[string]map[string]bool{}
	for _, platform := range []string{"linux_amd64", "linux_arm64"} {
		for _, program := range []string{"actuator", "keyturn", "watcher"} {
			info, err := buildinfo.ReadFile(filepath.Join(binaries, platform, program))
			testkit.Must(t, err)
			for _, module := range info.Deps {
				if module.Replace != nil {
					t.Errorf("%s: %s is replaced by %s, want no module that is replaced", program, module.Path, module.Replace.Path)
				}
				if linked[module.Path] == nil {
					linked[module.Path] = map[string]bool{}
				}
				linked[module.Path][program] = true
			}
		}
	}
	var list bytes.Buffer
	for _, module := range slices.Sorted(maps.Keys(linked)) {
		fmt.Fprintln(&list, module, strings.Join(slices.Sorted(maps.Keys(linked[module])), " "))
	}
	testkit.Golden(t, "testdata/modules.txt", list.Bytes())
}
