package tests

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// haystack is what came out of the programs, in pieces that each have a name for people. It is safe for use by several
// goroutines.
type haystack struct {
	mu     sync.Mutex
	pieces []piece
}

type piece struct {
	name    string
	content []byte
}

func (h *haystack) add(name string, content []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pieces = append(h.pieces, piece{name, bytes.Clone(content)})
}

// addJSON adds an object as the API shows it.
func (h *haystack) addJSON(t testing.TB, name string, object any) {
	t.Helper()
	content, err := json.Marshal(object)
	testkit.Must(t, err)
	h.add(name, content)
}

// sizeOf is how many bytes there are in the pieces with a name that begins so.
func (h *haystack) sizeOf(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := 0
	for _, p := range h.pieces {
		if strings.HasPrefix(p.name, name) {
			size += len(p.content)
		}
	}
	return size
}

// needle is what must not be in a haystack.
type needle struct {
	what    string
	content []byte
}

// minNeedle is the length of the shortest needle, in bytes, that no chance puts into a haystack.
const minNeedle = 12

// needles returns those forms of a value that are long enough to search for.
func needles(what string, forms map[string][]byte) []needle {
	var list []needle
	for form, content := range forms {
		if len(content) >= minNeedle {
			list = append(list, needle{what + " as " + form, content})
		}
	}
	return list
}

// search returns which needles are in which pieces. It goes through each piece once, however many needles there are.
func (h *haystack) search(list []needle) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	byStart := make(map[uint64][]needle, len(list))
	// Nearly everywhere two bytes say that no needle begins, which spares the look into the map.
	var begins [1 << 16]bool
	for _, n := range list {
		start := binary.LittleEndian.Uint64(n.content)
		byStart[start] = append(byStart[start], n)
		begins[binary.LittleEndian.Uint16(n.content)] = true
	}
	var found []string
	for _, p := range h.pieces {
		for i := range max(0, len(p.content)-minNeedle+1) {
			if !begins[binary.LittleEndian.Uint16(p.content[i:])] {
				continue
			}
			for _, n := range byStart[binary.LittleEndian.Uint64(p.content[i:])] {
				if bytes.HasPrefix(p.content[i:], n.content) {
					found = append(found, n.what+" in "+p.name)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// leaks returns where a value or half of it was found, and in which form.
func (h *haystack) leaks(value []byte) []string { return h.search(needlesOf("it", value)) }

// needlesOf are for a value and for each half of it, in all forms.
func needlesOf(what string, value []byte) []needle {
	half := len(value) / 2
	return append(needles(what, formsOf(value[:half])), needles(what, formsOf(value[half:]))...)
}

// scrutinize searches the log of a program that has ended for what no log may contain.
func (r *rig) scrutinize(program *programs.Program) {
	r.Helper()
	log := program.Output()
	for _, sign := range []string{"DATA RACE", "panic:", "fatal error:"} {
		if strings.Contains(log, sign) {
			r.Errorf("the log of the %s has %q", program.Name(), sign)
		}
	}
	content, err := os.ReadFile(r.programs.KeyFile())
	testkit.Must(r, err)
	h := &haystack{}
	h.add("the log of the "+program.Name(), []byte(log))
	for line := range strings.Lines(string(content)) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			continue // a comment
		}
		for _, leak := range h.leaks(key) {
			r.Errorf("a fingerprint key: %s", leak)
		}
	}
}
