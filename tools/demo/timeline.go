package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// mark is one point of a timeline.
type mark struct {
	name string
	// at is when it happened. Zero means that it was not seen.
	at   time.Time
	what string
}

// timeline sorts the marks by time. The first one caused the others: a mark that was not seen, or lies before it, is an error.
func timeline(marks []mark) ([]mark, error) {
	var wrong []error
	for _, m := range marks {
		switch {
		case m.at.IsZero():
			wrong = append(wrong, fmt.Errorf("%s was not seen: %s", m.name, m.what))
		case m.at.Before(marks[0].at):
			wrong = append(wrong, fmt.Errorf("%s was before %s: %s", m.name, marks[0].name, m.what))
		}
	}
	// A controller writes a Secret and then its own status: which of the two is seen first varies.
	sorted := slices.Clone(marks)
	slices.SortStableFunc(sorted, func(a, b mark) int { return a.at.Compare(b.at) })
	return sorted, errors.Join(wrong...)
}

// timeline writes a timeline: each mark with the time since the first.
func (r *report) timeline(marks ...mark) error {
	sorted, err := timeline(marks)
	if err != nil {
		return err
	}
	for _, m := range sorted {
		r.line("timeline", "%+6d ms  %-8s %s", m.at.Sub(sorted[0].at).Milliseconds(), m.name, m.what)
	}
	return nil
}
