package main

import (
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/process"
	"github.com/keyturn/keyturn/internal/sources"
)

// settings holds the values of the flags.
type settings struct {
	process process.Options
	watcher sources.Options
}

func newSettings() *settings {
	return &settings{process: process.DefaultOptions("watcher", version), watcher: sources.DefaultOptions()}
}

func (s *settings) addFlags(flags *pflag.FlagSet) {
	s.process.AddClusterFlags(flags)
	s.process.AddRunFlags(flags)
	flags.StringSliceVar(&s.watcher.Namespaces, "namespaces", nil, "`namespaces` to watch, separated by commas; empty means all")
	s.watcher.AddFlags(flags)
}
