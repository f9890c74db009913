// Package option stands in for the options of clients of Google Cloud.
package option

// WithUserAgent returns nil.
func WithUserAgent(string) any { return nil }
