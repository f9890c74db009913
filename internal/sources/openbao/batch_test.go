package openbao

import (
	"bytes"
	"fmt"
	"testing"
)

// bodyOf returns lines of that many writes, each of a secret of its own.
func bodyOf(count int) []byte {
	lines := make([][]byte, count)
	for n := range lines {
		lines[n] = writeLine("update", fmt.Sprintf("secret/data/%d", n), 1)
	}
	return bytes.Join(lines, []byte("\n"))
}

func TestABatchWithoutRoomIsToBeSentAgain(t *testing.T) {
	tests := []struct {
		name  string
		lines int
		room  int
		full  bool
		taken int
		polls int
	}{
		{name: "there is room for all lines", lines: 3, room: 3, taken: 3},
		{name: "there is none for the last", lines: 3, room: 2, full: true, taken: 2},
		{name: "there is none for the first", lines: 2, full: true},
		{name: "there is none for the only line, which a device posts while the store waits", lines: 1, polls: 1},
		{name: "there is none for the end of so many lines that their beginning would be forgotten", lines: maxAgain + 1, room: maxAgain, taken: maxAgain, polls: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			i := newIntake(t, test.room)
			b := batch{to: i}
			if err := b.read(t.Context(), bytes.NewReader(bodyOf(test.lines))); err != nil {
				t.Fatal(err)
			}
			if taken := len(i.taken()); b.full != test.full || taken != test.taken || len(i.polls) != test.polls {
				t.Errorf("full %t, %d taken, %d polls; want %t, %d, %d", b.full, taken, len(i.polls), test.full, test.taken, test.polls)
			}
		})
	}
}

func TestABatchThatIsSentAgainIsTakenOnce(t *testing.T) {
	i := newIntake(t, 2)
	taken := map[string]int{}
	for range 3 {
		b := batch{to: i}
		if err := b.read(t.Context(), bytes.NewReader(bodyOf(5))); err != nil {
			t.Fatal(err)
		}
		for _, e := range i.taken() {
			taken[e.path]++
		}
		if full := len(taken) < 5; b.full != full {
			t.Errorf("after %v: full %t, want %t", taken, b.full, full)
		}
	}
	for path, times := range taken {
		if times != 1 {
			t.Errorf("%s was taken %d times, want once", path, times)
		}
	}
}
