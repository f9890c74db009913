package main

import (
	"net/http"
	"time"
)

// healthServer returns a server whose /healthz answers 200. It is started last, so that a server that answers has started everything else.
func healthServer(address string) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
}
