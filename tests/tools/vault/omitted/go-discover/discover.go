// Package discover stands in for the module that finds the peers of a server in clouds, for storage by Raft.
package discover

import (
	"errors"
	"log"
)

// Provider would find peers in one cloud.
type Provider any

// Providers has none.
var Providers map[string]Provider

// Option would configure a [Discover].
type Option func()

// Discover finds no peers.
type Discover struct{}

// New returns a [Discover].
func New(...Option) (*Discover, error) { return &Discover{}, nil }

// WithProviders returns an option without an effect.
func WithProviders(map[string]Provider) Option { return func() {} }

// Addrs returns an error.
func (*Discover) Addrs(string, *log.Logger) ([]string, error) {
	return nil, errors.New("the discovery of peers is not in this build")
}
