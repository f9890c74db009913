package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// mark is one point of a time line.
type mark struct {
	name string
	// at is when it was. Zero: nobody has seen it.
	at   time.Time
	what string
}

// timeline brings the marks into the order of their times. The first of them is what led to the others: it is an error
// where another was not seen, or was before it.
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
	// What writes a Secret says so afterwards: which of the two is seen first is left open.
	sorted := slices.Clone(marks)
	slices.SortStableFunc(sorted, func(a, b mark) int { return a.at.Compare(b.at) })
	return sorted, errors.Join(wrong...)
}

// timeline writes a time line, each mark with the time since the first.
func (r *report) timeline(marks ...mark) error {
	sorted, err := timeline(marks)
	if err != nil {
		return err
	}
	for _, m := range sorted {
		r.line("time line", "%+6d ms  %-8s %s", m.at.Sub(sorted[0].at).Milliseconds(), m.name, m.what)
	}
	return nil
}
