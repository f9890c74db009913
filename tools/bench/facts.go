package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// fact is something about the machine or the programs that is needed to interpret the figures.
type fact struct{ Name, Value string }

func (b *bench) facts(ctx context.Context) ([]fact, error) {
	built, err := buildinfo.ReadFile(actuatorBinary)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of the actuator: %w", err)
	}
	facts := []fact{
		{"Date", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"Keyturn", revision(ctx, ".")},
		{"Go", built.GoVersion},
		{"Kubernetes", b.kubernetes},
	}
	if b.settings.old != "" {
		facts = append(facts, fact{"Earlier Keyturn", revision(ctx, b.settings.old)})
	}
	for _, dep := range built.Deps {
		if dep.Path == "github.com/nats-io/nats-server/v2" {
			facts = append(facts, fact{"NATS server, beside the actuator", dep.Version})
		}
	}
	return append(facts,
		fact{"Cores", fmt.Sprintf("%s, %s", coresFact(runtime.NumCPU()), procField("/proc/cpuinfo", "model name"))},
		fact{"Memory", memoryTotal()},
		fact{"Kernel", strings.TrimSpace(runtime.GOOS + " " + procText("/proc/sys/kernel/osrelease"))},
		fact{"Load average when it ended", fmt.Sprintf("%.1f", loadAverage())},
	), nil
}

// revision returns the revision of a checkout.
func revision(ctx context.Context, checkout string) string {
	described, err := exec.CommandContext(ctx, "git", "-C", checkout, "describe", "--always", "--dirty", "--tags").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(described))
}

// procText returns a file of /proc, or "" on systems other than Linux.
func procText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// procField returns the first value with a name in a file with lines "name: value".
func procField(path, name string) string {
	for line := range strings.Lines(procText(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memoryTotal() string {
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f GiB", float64(kilobytes)/(1<<20))
}

// loadAverage returns the load average of the last minute, or 0 if unknown.
func loadAverage() float64 {
	first, _, _ := strings.Cut(procText("/proc/loadavg"), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
