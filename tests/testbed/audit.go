package testbed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// AuditEntry is one entry of the API server's audit log.
type AuditEntry struct {
	// AuditID identifies the request. The two entries of a watch have the same one.
	AuditID string
	// Stage is ResponseComplete, ResponseStarted for a watch that has begun, or Panic.
	Stage string
	// Verb is the Kubernetes verb (get, list, watch, create, update, patch, delete, deletecollection), or the HTTP method for
	// non-resource paths.
	Verb      string
	User      string
	UserAgent string
	URI       string
	// Group, Resource and the rest identify the object. They are empty for non-resource paths.
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// Code is the HTTP status.
	Code int
	// Received is when the request arrived, and At is when the stage was reached, both to the microsecond.
	Received time.Time
	At       time.Time
}

// auditEvent is the wire form of an entry.
type auditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

func (e auditEvent) entry() AuditEntry {
	return AuditEntry{
		AuditID: e.AuditID, Stage: e.Stage, Verb: e.Verb, User: e.User.Username, UserAgent: e.UserAgent, URI: e.RequestURI,
		Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
		Received: e.RequestReceivedTimestamp, At: e.StageTimestamp,
	}
}

// auditLog returns the path of the audit log. It has a JSON line for every request, without bodies, but for those of the control plane's own servers
// and what the admin reads.
func (cp *ControlPlane) auditLog() string { return filepath.Join(cp.dir, "audit.log") }

// AuditSince returns the entries from an offset of the audit log on, which is 0 at first, and the offset for the next call.
// The entry of a request is written right after its response, so the newest entries may be missing for some milliseconds.
func (cp *ControlPlane) AuditSince(offset int64) ([]AuditEntry, int64, error) {
	f, err := os.Open(cp.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, offset, nil
	}
	if err != nil {
		return nil, offset, fmt.Errorf("read the audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, offset, fmt.Errorf("read the audit log: %w", err)
	}
	entries, read, err := parseAudit(f)
	if err != nil {
		return nil, offset, fmt.Errorf("read the audit log: %w", err)
	}
	return entries, offset + read, nil
}

// AuditEnd returns the offset of the end of the audit log. From there, AuditSince returns what happens from now on, and the
// entry that is being written, if there is one.
func (cp *ControlPlane) AuditEnd() (int64, error) {
	f, err := os.Open(cp.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find the end of the audit log: %w", err)
	}
	defer f.Close()
	end, err := endOfLines(f)
	if err != nil {
		return 0, fmt.Errorf("find the end of the audit log: %w", err)
	}
	return end, nil
}

// endOfLines returns the offset after the last complete line.
func endOfLines(r io.ReadSeeker) (int64, error) {
	const chunk = 64 << 10
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	for end > 0 {
		start := max(0, end-chunk)
		if _, err := r.Seek(start, io.SeekStart); err != nil {
			return 0, err
		}
		part := make([]byte, end-start)
		if _, err := io.ReadFull(r, part); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// parseAudit reads the entries up to the last complete line, and returns how many bytes they have.
func parseAudit(r io.Reader) (entries []AuditEntry, read int64, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, read, nil // a line without an end is still being written
		}
		if err != nil {
			return nil, 0, err
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, 0, fmt.Errorf("entry at byte %d: %w", read, err)
		}
		entries = append(entries, event.entry())
		read += int64(len(line))
	}
}

// Requests returns the first entry of each request of a user, in the order of the log. An empty user means all users.
func Requests(entries []AuditEntry, user string) []AuditEntry {
	var requests []AuditEntry
	seen := map[string]bool{}
	for _, e := range entries {
		if (user == "" || e.User == user) && !seen[e.AuditID] {
			seen[e.AuditID] = true
			requests = append(requests, e)
		}
	}
	return requests
}
