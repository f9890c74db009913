package process

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestADataRaceInALogIsTold(t *testing.T) {
	for _, tt := range []struct{ name, log, want string }{
		{"a log with a race", "ready\n==================\nWARNING: DATA RACE\nWrite at 0x00c0000140a8\n", "WARNING: DATA RACE in the log of watcher\n"},
		{"a log with two races", "WARNING: DATA RACE\nRead at\nWARNING: DATA RACE\n", "WARNING: DATA RACE in the log of watcher\n"},
		{"a log without a race", "ready\nWARNING: a lease is lost\n", ""},
		{"an empty log", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &Process{name: "watcher", logFile: filepath.Join(t.TempDir(), "log")}
			testkit.WriteFile(t, p.logFile, tt.log)
			var told strings.Builder
			p.tellRace(&told)
			if told.String() != tt.want {
				t.Errorf("got %q, want %q", told.String(), tt.want)
			}
		})
	}
}
