package main

import (
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/internal/notify"
	"github.com/keyturn/keyturn/internal/process"
)

// settings holds the values of the flags.
type settings struct {
	process  process.Options
	actuator actuate.Options
	notify   notify.Options
	embed    bool
	embedded embedded.Options
	// storesDomain is the JetStream domain of the clusters of StoresFrom.
	storesDomain string
}

func newSettings() *settings {
	return &settings{process: process.DefaultOptions("actuator", version), actuator: actuate.DefaultOptions()}
}

// addCommonFlags adds the flags that the program and all its commands have.
func (s *settings) addCommonFlags(flags *pflag.FlagSet) {
	s.process.AddClusterFlags(flags)
	flags.StringSliceVar(&s.actuator.Namespaces, "namespaces", nil, "`namespaces` whose workloads to roll, separated by commas; empty means all")
	flags.StringSliceVar(&s.actuator.StoresFrom, "stores-from", nil,
		"other `clusters` whose watchers watch secret stores for this one, separated by commas")
}

// addRunFlags adds the flags that only the program itself has.
func (s *settings) addRunFlags(flags *pflag.FlagSet) {
	s.process.AddRunFlags(flags)
	s.actuator.AddFlags(flags)
	s.notify.AddFlags(flags)
	s.addEmbeddedFlags(flags)
}
