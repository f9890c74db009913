package openbao

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// roomTimeout is how long a batch waits for room. It is shorter than what a request may take, also while the receiver shuts down.
	roomTimeout = 3 * time.Second
	// maxAgain is the maximum number of lines in a batch that is to be sent again: what was taken of it must still be known then.
	maxAgain = maxRecent
)

// batch takes the lines of one body. An audit device posts one line, for which its store waits. A log shipper posts many: it can wait, and sends
// them again if it is told so.
type batch struct {
	to    *intake
	lines int
	// first is the first line if there was no room for it and the hint that it may become.
	first []byte
	// full says that a line was not taken, nor any after it, and that the body is to be sent again.
	full bool
	// skipped says that the body was too long, or that a line was that may have been a change.
	skipped bool
}

// read takes the lines of a body.
func (b *batch) read(ctx context.Context, body io.Reader) error {
	inTime, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	take := func(line []byte) { b.take(ctx, inTime, line) }
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
	if b.first != nil {
		b.to.take(ctx, b.first)
	}
	b.skipped = b.skipped || tooLong
	return nil
}

// take takes one line, and waits for room until inTime is done if it is not the only one. If there is none, a body of few lines is to be sent again.
// A line that will not be sent again is dropped only if the spool is full: it may need no room for a hint.
func (b *batch) take(ctx, inTime context.Context, line []byte) {
	b.lines++
	if b.lines == 1 {
		now, cancel := context.WithCancel(ctx)
		cancel()
		if !b.to.takeInTime(ctx, now, line) {
			b.first = bytes.Clone(line)
		}
		return
	}
	if b.first != nil {
		b.full = !b.to.takeInTime(ctx, inTime, b.first)
		b.first = nil
	}
	switch {
	case b.full:
	case b.lines <= maxAgain:
		b.full = !b.to.takeInTime(ctx, inTime, line)
	case !b.to.takeInTime(ctx, inTime, line):
		b.to.take(ctx, line)
	}
}

// isShipped reports whether a body is that of a log shipper: compressed, or of several lines. It keeps nothing of it.
func isShipped(encoding string, body io.Reader) bool {
	if encoding != "" && encoding != "identity" {
		return true
	}
	behind, buffer := false, make([]byte, 4<<10) // behind the end of the first line
	for {
		n, err := body.Read(buffer)
		part := buffer[:n]
		if !behind {
			_, part, behind = bytes.Cut(part, []byte("\n"))
		}
		if len(bytes.TrimSpace(part)) > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
}
