package openbao

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

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
		{name: "empty lines are left out", content: "\n\na\n \n", want: []string{"a"}},
		{name: "half a line at the end", content: "a\nb", want: []string{"a"}, rest: "b"},
		{name: "a line of just the limit", content: long + "\nb\n", want: []string{long, "b"}},
		{name: "a line of one more is skipped to its end", content: "a\n" + long + "x\nb\n", want: []string{"a", "b"}, skipped: 1},
		{name: "a line of much more is skipped to its end", content: long + long + "\nb\n", want: []string{"b"}, skipped: 1},
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
