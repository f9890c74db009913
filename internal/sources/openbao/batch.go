package openbao

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// maxAgain is the maximum number of lines in a batch that is to be sent again: what was taken of it must still be known then.
const maxAgain = maxRecent

// batch takes the lines of one body. An audit device posts one line, for which its store waits. A log shipper posts many, and sends them again if the
// answer says so.
type batch struct {
	to    *intake
	lines int
	// full says that a line was not taken, nor any after it, and that the body is to be sent again.
	full bool
	// skipped says that the body was too long, or that a line was that may have been a change.
	skipped bool
}

// read takes the lines of a body.
func (b *batch) read(ctx context.Context, body io.Reader) error {
	take := func(line []byte) { b.take(ctx, line) }
	skip := func(head []byte) { b.skipped = b.to.skip(ctx, head) || b.skipped }
	rest, err := readLines(body, maxLine, take, skip)
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLong && len(rest) > 0:
		b.to.skip(ctx, rest)
	case tooLong:
	case err != nil:
		return err
	case len(rest) > 0:
		take(rest)
	}
	if b.full && b.lines == 1 {
		b.full = false
		b.to.miss(ctx, dropped)
	}
	b.skipped = b.skipped || tooLong
	return nil
}

// take takes one line. If there is no room for it, a body of few lines is to be sent again.
func (b *batch) take(ctx context.Context, line []byte) {
	b.lines++
	switch {
	case b.full || b.to.take(ctx, line):
	case b.lines <= maxAgain:
		b.full = true
	default:
		b.to.miss(ctx, dropped)
	}
}

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
