package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestOnlyAClosedNetworkExcusesAMissingCheckForVulnerabilities runs .ci/vulncheck with a program in place of govulncheck.
func TestOnlyAClosedNetworkExcusesAMissingCheckForVulnerabilities(t *testing.T) {
	const fetching, database = "govulncheck: fetching vulnerabilities: ", "https://vuln.go.dev/index/modules.json.gz"
	for _, test := range []struct {
		name, status, says string
		want               int
		unchecked          bool
	}{
		{name: "nothing is found", status: "0"},
		{name: "one is found", status: "3", want: 3},
		{name: "one is found by who warns about the database", status: "3", says: "a slow answer from " + database, want: 3},
		{name: "the name is not resolved", status: "1", says: fetching + `Get "` + database + `": lookup vuln.go.dev: no such host`, unchecked: true},
		{name: "a proxy refuses", status: "1", says: fetching + "HTTP GET " + database + " returned unexpected status: 403 Forbidden", unchecked: true},
		{name: "a proxy answers with a page", status: "1", says: fetching + "gzip: invalid header", unchecked: true},
		{name: "the code does not compile", status: "1", says: "govulncheck: loading packages: there are errors", want: 1},
		{name: "the flags are wrong", status: "2", says: "flag provided but not defined", want: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "govulncheck")
			script := "#!/bin/sh\n[ \"$*\" = ./cmd/... ] || exit 9\nprintf '%s\\n' \"$SAYS\" >&2\nexit \"$STATUS\"\n"
			testkit.WriteProgram(t, program, script)
			cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci/vulncheck"))
			cmd.Env = append(os.Environ(), "GOVULNCHECK="+program, "SAYS="+test.says, "STATUS="+test.status)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != test.want {
				t.Errorf("got %v, want status %d:\n%s", err, test.want, out)
			}
			if got := strings.Contains(string(out), "\nvulncheck: NOT CHECKED"); got != test.unchecked || !strings.Contains(string(out), test.says) {
				t.Errorf("got that nothing was checked: %t, want %t and what govulncheck says:\n%s", got, test.unchecked, out)
			}
		})
	}
}
