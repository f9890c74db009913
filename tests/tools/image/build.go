package main

import (
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// programs are the programs in the image.
var programs = []string{"actuator", "keyturn", "watcher"}

// build has the programs of one platform.
type build struct {
	folder       string
	architecture string
	commit       commit
	// infos has the build info of each program, in the order of programs.
	infos []*debug.BuildInfo
}

// commit is the commit that a binary was built from.
type commit struct {
	revision string
	date     time.Time
	modified bool
}

func (c commit) String() string {
	if c.modified {
		return c.revision + " with changes"
	}
	return c.revision
}

// readBuild reads the build info of the programs in a folder. All must be static, for one architecture and from one commit.
func readBuild(folder string) (build, error) {
	_, architecture, _ := strings.Cut(filepath.Base(folder), "_")
	b := build{folder: folder, architecture: architecture}
	for _, program := range programs {
		path := filepath.Join(folder, program)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return build{}, err
		}
		settings := map[string]string{}
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
		for key, want := range map[string]string{"GOOS": "linux", "GOARCH": architecture, "CGO_ENABLED": "0", "-trimpath": "true"} {
			if got := settings[key]; got != want {
				return build{}, fmt.Errorf("%s: is built with %s=%s, want %s", path, key, got, want)
			}
		}
		c := commit{revision: settings["vcs.revision"], modified: settings["vcs.modified"] == "true"}
		if c.date, err = time.Parse(time.RFC3339, settings["vcs.time"]); err != nil || c.revision == "" {
			return build{}, fmt.Errorf("%s: does not say which commit it is of, want it built in a git repository with -buildvcs=true", path)
		}
		if len(b.infos) > 0 && c != b.commit {
			return build{}, fmt.Errorf("%s: is of commit %s, want %s as the others", path, c, b.commit)
		}
		b.commit, b.infos = c, append(b.infos, info)
	}
	return b, nil
}
