package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// record is a line of a file: a message as the stream has it. The attributes of the event are headers.
type record struct {
	Stream   string              `json:"stream"`
	Created  time.Time           `json:"created"` // the stream: a later one begins at 1 again
	Sequence uint64              `json:"sequence"`
	Stored   time.Time           `json:"stored"`
	Subject  string              `json:"subject"`
	Headers  map[string][]string `json:"headers"`
	Data     json.RawMessage     `json:"data"`
}

// folder has the files. It appends to the newest one.
type folder struct {
	dir  string
	file *os.File // nil if there is none yet
	last record   // zero if there is none yet
}

// openFolder finds the last record. What a crash has left of a line after it is removed.
func openFolder(dir string) (*folder, error) {
	paths, err := filesIn(dir)
	if err != nil || len(paths) == 0 {
		return &folder{dir: dir}, err
	}
	f := &folder{dir: dir}
	for i := len(paths) - 1; i >= 0 && f.last.Sequence == 0; i-- {
		whole, err := readFile(paths[i], func(one record) { f.last = one })
		if err != nil {
			return nil, err
		}
		if i < len(paths)-1 {
			continue
		}
		if err := os.Truncate(paths[i], whole); err != nil {
			return nil, err
		}
		if f.file, err = os.OpenFile(paths[i], os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// filesIn returns the paths of the files, the oldest first.
func filesIn(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "history-*.jsonl"))
}

// readFile calls each for the records of a file. It returns how long the file is up to the last whole line.
func readFile(path string, each func(record)) (whole int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		var one record
		if err := json.Unmarshal(line, &one); err != nil {
			return whole, fmt.Errorf("%s: the line at byte %d: %w", path, whole, err)
		}
		whole += int64(len(line))
		each(one)
	}
}

// write appends a record to the file of the day on which the stream stored the message, or to the newest file if the clock was set back to an earlier
// day: the order of the files is that of the stream.
func (f *folder) write(one record, data []byte) error {
	one.Data = data
	if !json.Valid(data) {
		encoded, err := json.Marshal(data) // in base64
		if err != nil {
			return err
		}
		one.Data = encoded
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(one); err != nil {
		return err
	}
	name := filepath.Join(f.dir, "history-"+one.Stored.Format(time.DateOnly)+".jsonl")
	if f.file == nil || name > f.file.Name() {
		if err := f.close(); err != nil {
			return err
		}
		var err error
		if f.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	_, err := f.file.Write(line.Bytes())
	return err
}

// close writes what was appended to the disk.
func (f *folder) close() error {
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.file.Sync(), f.file.Close())
	f.file = nil
	return err
}

// checkFolder reports each place of the files where messages are missing, doubled or out of order.
func checkFolder(dir string) error {
	paths, err := filesIn(dir)
	if err != nil {
		return err
	}
	var problems []error
	var last record
	for _, path := range paths {
		if _, err := readFile(path, func(one record) {
			problems = append(problems, compare(path, last, one))
			last = one
		}); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// compare returns what is wrong between two records that follow each other. Before the first of all, older ones may have expired.
func compare(path string, last, one record) error {
	expected := uint64(1)
	switch {
	case last.Sequence == 0:
		return nil
	case one.Created.Equal(last.Created):
		expected = last.Sequence + 1
	case one.Created.Before(last.Created):
		return fmt.Errorf("%s: sequence %d is of an older stream than %d before it", path, one.Sequence, last.Sequence)
	}
	switch {
	case one.Sequence > expected:
		return fmt.Errorf("%s: sequences %d to %d are missing", path, expected, one.Sequence-1)
	case one.Sequence < expected:
		return fmt.Errorf("%s: sequence %d comes after %d", path, one.Sequence, last.Sequence)
	}
	return nil
}
