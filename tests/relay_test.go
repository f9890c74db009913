package tests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// relayAudit posts each new line of a file to a receiver, one per request, until the test ends. It gives Vault what OpenBao
// has: an HTTP audit device.
func relayAudit(r *rig, file, url string) {
	r.Helper()
	from, err := os.Open(file)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := from.Seek(0, io.SeekEnd); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	r.Cleanup(func() {
		cancel()
		<-done
		from.Close()
	})
	go func() {
		defer close(done)
		if err := postLines(ctx, from, url); err != nil && ctx.Err() == nil {
			r.Errorf("posting the audit: %v", err)
		}
	}()
}

func postLines(ctx context.Context, from io.Reader, url string) error {
	lines, tick := bufio.NewReader(from), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	var line []byte
	for {
		part, err := lines.ReadBytes('\n')
		line = append(line, part...)
		if errors.Is(err, io.EOF) {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := postLine(ctx, url, line); err != nil && !errors.Is(err, errNotTaken) {
			return err
		}
		line = line[:0]
	}
}

// web is the tests' HTTP client.
var web = &http.Client{Timeout: patience}

// errNotTaken is returned when nobody accepted a line. OpenBao's device does not retry either.
var errNotTaken = errors.New("the receiver does not answer")

// postLine posts one line, or several, with the token of the audit device.
func postLine(ctx context.Context, url string, line []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(line))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+auditToken)
	response, err := web.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return errors.New("the receiver answers " + response.Status)
	}
	return nil
}
