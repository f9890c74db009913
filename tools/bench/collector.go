package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// collector accepts spans and drops them, so that the benchmark measures the cost of creating and sending spans, and not that of
// a backend on the same cores.
type collector struct {
	*httptest.Server
	// received is the number of bytes received.
	received atomic.Int64
}

func startCollector() *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		c.received.Add(n)
		if err != nil {
			http.Error(w, "the body ended early", http.StatusBadRequest)
			return
		}
		// An empty message means that everything was accepted.
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	return c
}
