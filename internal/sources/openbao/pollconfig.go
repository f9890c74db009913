package openbao

import (
	"fmt"
	"strings"
	"time"
)

const defaultInterval = time.Minute

// pollConfig selects what is polled.
type pollConfig struct {
	// Interval is the time between two polls. Default 1m.
	Interval string `json:"interval"`
	// Mounts are the KV v2 mounts to poll, each by its path or by <namespace>/<path>.
	Mounts []string `json:"mounts"`
	// Referenced polls the paths that somebody references, unless their mount is polled as a whole.
	Referenced bool `json:"referenced"`
	// DatabaseMounts and LDAPMounts are the mounts whose static roles are polled.
	DatabaseMounts []string `json:"databaseMounts"`
	LDAPMounts     []string `json:"ldapMounts"`
}

// enabled reports whether anything is polled.
func (p *pollConfig) enabled() bool {
	return p.Referenced || len(p.Mounts)+len(p.DatabaseMounts)+len(p.LDAPMounts) > 0
}

// resolve checks the fields, trims the mounts and returns the interval.
func (p *pollConfig) resolve() (interval time.Duration, problems []error) {
	interval = defaultInterval
	if p.Interval != "" {
		var err error
		if interval, err = time.ParseDuration(p.Interval); err != nil || interval < time.Second {
			problems = append(problems, fmt.Errorf("poll.interval: %q is not a duration of a second or more, want one such as 30s or 1m", p.Interval))
		}
	}
	for _, list := range []struct {
		field string
		paths []string
	}{{"mounts", p.Mounts}, {"databaseMounts", p.DatabaseMounts}, {"ldapMounts", p.LDAPMounts}} {
		for i, path := range list.paths {
			list.paths[i] = strings.Trim(path, "/")
			if !isPath(list.paths[i]) {
				problems = append(problems, fmt.Errorf("poll.%s[%d]: %q is not the path of a mount, want one such as secret or team-a/secret",
					list.field, i, path))
			}
		}
	}
	return interval, problems
}
