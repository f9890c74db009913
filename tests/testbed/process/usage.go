package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory is how much RAM a process uses, in bytes.
type Memory struct {
	// RSS is the current size of the resident set (VmRSS).
	RSS int64
	// Peak is the largest size that it has had (VmHWM).
	Peak int64
	// Anonymous is the part of RSS that is no page of a file (RssAnon): what the kernel cannot take back, and no other process shares.
	Anonymous int64
}

// Memory reads the memory of a running process from /proc, which only Linux has.
func (p *Process) Memory() (Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of %s: %w", p.name, err)
	}
	m, err := parseMemory(string(status))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of %s: %w", p.name, err)
	}
	return m, nil
}

func parseMemory(status string) (Memory, error) {
	var m Memory
	wanted := map[string]*int64{"VmRSS:": &m.RSS, "VmHWM:": &m.Peak, "RssAnon:": &m.Anonymous}
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) != 3 || wanted[fields[0]] == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return Memory{}, err
		}
		*wanted[fields[0]] = kilobytes << 10
		delete(wanted, fields[0])
	}
	if len(wanted) > 0 {
		return Memory{}, fmt.Errorf("%w: no memory is left to it", ErrExited)
	}
	return m, nil
}

// CPU returns the user and system processor time that the process has used so far. Its resolution is 10 ms. It is read from
// /proc, which only Linux has.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of %s: %w", p.name, err)
	}
	used, err := parseCPU(stat)
	if err != nil {
		return 0, fmt.Errorf("read the processor time of %s: %w", p.name, err)
	}
	return used, nil
}

func parseCPU(stat []byte) (time.Duration, error) {
	// The second field is the name in parentheses, which may contain anything, so count from its end, where the third field
	// begins.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system, tick = 14 - 3, 15 - 3, 10 * time.Millisecond
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields after the name", len(fields))
	}
	var total time.Duration
	for _, i := range []int{user, system} {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ticks) * tick
	}
	return total, nil
}
