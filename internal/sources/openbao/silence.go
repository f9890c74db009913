package openbao

import "sync"

// silence notices that the store has stopped answering while a mount, or what is referenced, is polled. The rest then fails without requests: each
// may take until its timeout, and there may be thousands. A store that answers 503 is not silent: it may have locked only one namespace.
type silence struct {
	mu    sync.Mutex
	inRow int
	err   error
}

// begin forgets what was polled before: some secrets of a mount may never be answered, and those of others are.
func (s *silence) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inRow, s.err = 0, nil
}

// note records how a request ended.
func (s *silence) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || !down(err) || code(err) != 0 {
		s.inRow = 0
		return
	}
	s.inRow, s.err = s.inRow+1, err
}

// lasts returns the last error if as many requests in a row were not answered as are made at once.
func (s *silence) lasts() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inRow < concurrency {
		return nil
	}
	return s.err
}
