package openbao

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// maxLine is the maximum length of a line, in bytes. Longer lines are skipped while they are read. Lines about writes of secrets are shorter.
	// The line of an answer about a whole mount, such as one to the poller, is longer, but not relevant.
	maxLine = 1 << 20
	// readBuffer is how many bytes are read at once.
	readBuffer = 64 << 10
)

// readLines calls take for each line until the reader ends, and skip with the start of each line that is longer than the limit. It omits
// blank lines. It returns what follows the last line end, and the error that ended the reader, nil for io.EOF.
func readLines(r io.Reader, limit int, take, skip func(line []byte)) (rest []byte, err error) {
	reader := bufio.NewReaderSize(r, readBuffer)
	var line []byte // the start of a line that is longer than the buffer
	tooLong := false
	for {
		part, err := reader.ReadSlice('\n')
		switch {
		case tooLong:
		case len(line)+len(part) > limit+1:
			tooLong, line = true, append(line, part...)[:min(len(line)+len(part), readBuffer)]
		case len(line) > 0 || err != nil:
			line = append(line, part...)
		default:
			line = part
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		whole := bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case tooLong:
			skip(whole)
			whole = nil
		case len(bytes.TrimSpace(whole)) == 0:
			whole = nil
		case err == nil:
			take(whole)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return whole, err
		}
		// This releases the memory of a long line.
		tooLong, line = false, nil
	}
}
