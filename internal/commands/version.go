package commands

import (
	"runtime/debug"
	"strings"
)

// BuildVersion returns the text of --version: the version, and the commit and its date if the go command has stamped them into the
// binary, as it does when it builds in a Git repository.
func BuildVersion(version string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	return describeBuild(version, info)
}

func describeBuild(version string, info *debug.BuildInfo) string {
	stamps := map[string]string{}
	for _, setting := range info.Settings {
		stamps[setting.Key] = setting.Value
	}
	var parts []string
	if commit := stamps["vcs.revision"]; commit != "" {
		if stamps["vcs.modified"] == "true" {
			commit += " with changes"
		}
		parts = append(parts, "commit "+commit)
	}
	if date := stamps["vcs.time"]; date != "" {
		parts = append(parts, "of "+date)
	}
	return version + " (" + strings.Join(append(parts, info.GoVersion), ", ") + ")"
}
