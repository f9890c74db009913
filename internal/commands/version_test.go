package commands

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	stamp := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	tests := []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{
			name:     "of a commit",
			settings: []debug.BuildSetting{stamp("vcs", "git"), stamp("vcs.revision", "3aa20af"), stamp("vcs.time", "2026-11-20T18:33:00Z"), stamp("vcs.modified", "false")},
			want:     "v1.2.0 (commit 3aa20af, of 2026-11-20T18:33:00Z, go1.26.8)",
		},
		{
			name:     "of a commit and what was changed since",
			settings: []debug.BuildSetting{stamp("vcs.revision", "3aa20af"), stamp("vcs.time", "2026-11-20T18:33:00Z"), stamp("vcs.modified", "true")},
			want:     "v1.2.0 (commit 3aa20af with changes, of 2026-11-20T18:33:00Z, go1.26.8)",
		},
		{name: "outside of a repository", want: "v1.2.0 (go1.26.8)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := describeBuild("v1.2.0", &debug.BuildInfo{GoVersion: "go1.26.8", Settings: test.settings}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestBuildVersionIsOfThisBinary(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("a test has no build information")
	}
	if got := BuildVersion("v1.2.0"); !strings.HasPrefix(got, "v1.2.0 (") || !strings.HasSuffix(got, info.GoVersion+")") {
		t.Errorf("got %q", got)
	}
}
