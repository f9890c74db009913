package openbao

import (
	"cmp"
	"fmt"
)

// skips contains the first error of each kind about parts of a mount that the token may not read. They do not fail a poll, unless the store refused
// most of it.
type skips struct {
	errs         []error
	listed, read tally // of folders, and of their content
}

// rest keeps the errors for which retries are useless, and returns the first other one.
func (s *skips) rest(errs []error) error {
	for _, err := range errs {
		switch {
		case err == nil:
		case !final(err):
			return err
		case !hasKindOf(s.errs, err):
			s.errs = append(s.errs, err)
		}
	}
	return nil
}

// noteList counts a folder with its first page, and returns an error that is not to be skipped. A mount whose root cannot be listed is read in
// another way, or not at all.
func (s *skips) noteList(folder, after string, err error) error {
	if err != nil && folder == "" {
		return err
	}
	if after == "" {
		s.listed.add(err)
	}
	return s.rest([]error{err})
}

// most returns an error if the store refused most of the secrets, or most of the secrets and folders.
func (s *skips) most() error {
	both := tally{s.read.asked + s.listed.asked, s.read.refused + s.listed.refused, cmp.Or(s.read.first, s.listed.first)}
	return cmp.Or(s.read.most(), both.most())
}

// tally counts requests and refusals.
type tally struct {
	asked, refused int
	first          error // the first refusal
}

func (t *tally) add(errs ...error) {
	t.asked += len(errs)
	for _, err := range errs {
		if err != nil && kind(err) == "forbidden" {
			t.refused++
			t.first = cmp.Or(t.first, err)
		}
	}
}

// most returns an error if the store refused more than half of the requests, because the poll then shows too little of the store.
func (t *tally) most() error {
	if 2*t.refused <= t.asked {
		return nil
	}
	return fmt.Errorf("%d of %d requests refused: %w", t.refused, t.asked, t.first)
}
