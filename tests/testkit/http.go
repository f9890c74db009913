package testkit

import (
	"context"
	"io"
	"net/http"
)

// Get returns the response of an HTTP server of a test. It keeps no connection open, so that none of its goroutines outlives
// the test.
func Get(ctx context.Context, url string) (code int, body string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
