package process

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAPinnedProcessRunsOnItsCoresOnly(t *testing.T) {
	p := Run(t, Options{Path: "/bin/sleep", Args: []string{"60"}})
	// The first core is not always among those that this process may use.
	first, _, _ := strings.Cut(coresOf(t, p.Pid()), ",")
	first, _, _ = strings.Cut(first, "-")
	var core int
	if _, err := fmt.Sscan(first, &core); err != nil {
		t.Fatal(err)
	}
	testkit.Must(t, p.Pin(core))
	if got := coresOf(t, p.Pid()); got != first {
		t.Errorf("it runs on %s, want %s", got, first)
	}
}

// coresOf returns the cores that a process may use, such as "0-3,6".
func coresOf(t *testing.T, pid int) string {
	t.Helper()
	status := testkit.ReadFile(t, fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(status) {
		if cores, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(cores)
		}
	}
	t.Fatalf("process %d has no cores", pid)
	return ""
}
