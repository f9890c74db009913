package program

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropCode releases the pages of the program's own code and constants. Most of them were needed only at the start, when every linked
// package registers its types. The kernel reads a page from its page cache when it is needed again.
//
// It does nothing unless the program is linked statically to a fixed address: otherwise the loader has written to constants, and its
// changes are not in the file.
func dropCode() error {
	if !linkedStatically() {
		return nil
	}
	mapped, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("reading the memory map: %w", err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading the path of the program: %w", err)
	}
	for line := range strings.Lines(string(mapped)) {
		from, size, ok := codeOf(program, line)
		if !ok {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, size, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("releasing code pages: %w", errno)
		}
	}
	return nil
}

func linkedStatically() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-buildmode", Value: "exe"}) &&
		slices.Contains(build.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"})
}

// codeOf parses a line of /proc/self/maps: see proc_pid_maps(5). It returns false unless the line is a read-only mapping of the program.
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
