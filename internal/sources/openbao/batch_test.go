package openbao

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
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

// framed returns the result of readLines.
func framed(t *testing.T, r io.Reader, limit int) (lines []string, skipped int, rest string) {
	t.Helper()
	behind, err := readLines(r, limit, func(line []byte) { lines = append(lines, string(line)) }, func(head []byte) {
		skipped++
		if len(head) > readBuffer || len(head) == 0 {
			t.Errorf("%d bytes of a line that is too long are kept", len(head))
		}
	})
	if err != nil && err.Error() != "reset" {
		t.Error(err)
	}
	return lines, skipped, string(behind)
}

func TestFraming(t *testing.T) {
	const limit = 3 * readBuffer
	long := strings.Repeat("x", limit)
	tests := []struct {
		name, content string
		want          []string
		skipped       int
		rest          string
	}{
		{name: "nothing"},
		{name: "two lines", content: "a\nbc\n", want: []string{"a", "bc"}},
		{name: "empty lines are left out", content: "\n\na\n \n", want: []string{"a"}},
		{name: "half a line at the end", content: "a\nb", want: []string{"a"}, rest: "b"},
		{name: "a line of more than a buffer", content: "a\n" + long[:readBuffer+7] + "\nb\n", want: []string{"a", long[:readBuffer+7], "b"}},
		{name: "a line of just the limit", content: long + "\nb\n", want: []string{long, "b"}},
		{name: "a line of one more is skipped to its end", content: "a\n" + long + "x\nb\n", want: []string{"a", "b"}, skipped: 1},
		{name: "a line of much more is skipped to its end", content: long + long + "\nb\n", want: []string{"b"}, skipped: 1},
		{name: "a line without an end", content: long + long, skipped: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once": strings.NewReader(test.content), "in halves": iotest.HalfReader(strings.NewReader(test.content)),
				"with an error": io.MultiReader(strings.NewReader(test.content), iotest.ErrReader(errors.New("reset"))),
			} {
				got, skipped, rest := framed(t, r, limit)
				if diff := cmp.Diff(test.want, got); diff != "" || skipped != test.skipped || rest != test.rest {
					t.Errorf("%s: skipped %d, rest %q, (-want +got):\n%s", how, skipped, rest, diff)
				}
			}
		})
	}
}

func FuzzFraming(f *testing.F) {
	f.Add([]byte("a\nbc\n\nd"), 2)
	f.Add(bytes.Repeat([]byte("x"), 2*readBuffer), readBuffer)
	f.Fuzz(func(t *testing.T, content []byte, limit int) {
		if limit < 1 || limit > 2*readBuffer {
			return
		}
		got, skipped, rest := framed(t, bytes.NewReader(content), limit)
		whole := bytes.Split(content, []byte("\n"))
		var want []string
		wantRest, long := "", 0
		for i, line := range whole {
			isLast := i == len(whole)-1
			switch {
			case len(line) > limit+1, len(line) > limit && !isLast:
				long++
			case len(bytes.TrimSpace(line)) == 0:
			case isLast:
				wantRest = string(line)
			default:
				want = append(want, string(line))
			}
		}
		if skipped != long || rest != wantRest || !slices.Equal(got, want) {
			t.Errorf("%q, %d skipped, rest %q; want %q, %d, %q", got, skipped, rest, want, long, wantRest)
		}
	})
}
