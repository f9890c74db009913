package telemetry

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetCode lets go of the pages of the program's own code and constants. Most of them were needed at the start alone, when
// every package that is linked registers what it has. What is needed again comes back from the page cache of the kernel.
//
// It is for programs that are linked statically to a fixed address. In others the loader has written to constants, and what
// it wrote is not in the file.
func forgetCode() error {
	if !linkedStatically() {
		return nil
	}
	mapped, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("reading what is mapped: %w", err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading which program this is: %w", err)
	}
	for line := range strings.Lines(string(mapped)) {
		from, size, ok := codeOf(program, line)
		if !ok {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, size, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("letting go of code: %w", errno)
		}
	}
	return nil
}

func linkedStatically() bool {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	settings := make(map[string]string, len(build.Settings))
	for _, setting := range build.Settings {
		settings[setting.Key] = setting.Value
	}
	return settings["-buildmode"] == "exe" && settings["CGO_ENABLED"] == "0"
}

// codeOf reads a line of /proc/self/maps: see proc_pid_maps(5). It is false for all but what is mapped of the program and is
// never written to.
func codeOf(program, line string) (from, size uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != program || fields[1] != "r-xp" && fields[1] != "r--p" {
		return 0, 0, false
	}
	first, last, _ := strings.Cut(fields[0], "-")
	low, err := strconv.ParseUint(first, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	high, err := strconv.ParseUint(last, 16, 64)
	if err != nil || high <= low {
		return 0, 0, false
	}
	return uintptr(low), uintptr(high - low), true
}
