package secretstore

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

// shipInterval is how often the audit file is read again at its end.
const shipInterval = 5 * time.Millisecond

// ShipAudit posts each line that the device of [Store.AuditToFile] writes from now on to a URL, with a bearer token. It is the log shipper of a store
// that cannot post its audit log. A line is lost while nothing listens at the URL. The returned function ends it, and returns an error if a line was
// refused.
func (s *Store) ShipAudit(ctx context.Context, url, token string) (stop func() error, err error) {
	from, err := os.Open(s.AuditFile(fileDevice))
	if err != nil {
		return nil, fmt.Errorf("ship the audit log: %w", err)
	}
	if _, err := from.Seek(0, io.SeekEnd); err != nil {
		return nil, fmt.Errorf("ship the audit log: %w", errors.Join(err, from.Close()))
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer from.Close()
		ended <- shipLines(ctx, from, url, token)
	}()
	return func() error { cancel(); return <-ended }, nil
}

// shipLines posts the lines of a file that grows, until ctx is done.
func shipLines(ctx context.Context, from io.Reader, url, token string) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	lines, tick := bufio.NewReader(from), time.NewTicker(shipInterval)
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
			return fmt.Errorf("read the audit log: %w", err)
		}
		if err := shipLine(ctx, client, url, token, line); err != nil {
			return err
		}
		line = line[:0]
	}
}

// shipLine posts a line. It returns an error if the answer is no success, and none if there is no answer.
func shipLine(ctx context.Context, client *http.Client, url, token string, line []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(line))
	if err != nil {
		return fmt.Errorf("ship a line: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return nil //nolint:nilerr // nothing listens
	}
	response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("ship a line: the answer is %s", response.Status)
	}
	return nil
}
