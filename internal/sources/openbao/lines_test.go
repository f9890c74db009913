package openbao

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
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
	must(t, err)
	return lines, skipped, string(behind)
}

func FuzzFraming(f *testing.F) {
	f.Add([]byte("a\nbc\n\nd"), 2)
	f.Add([]byte("\n\na\n \n"), 2)
	for _, size := range []int{readBuffer + 7, 2 * readBuffer, 2*readBuffer + 1, 5 * readBuffer} {
		f.Add([]byte("a\n"+strings.Repeat("x", size)+"\nb\n"), 2*readBuffer)
	}
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
