package main

import (
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// settings are what the flags set.
type settings struct {
	kube      kube.Options
	connect   events.ConnectOptions
	telemetry telemetry.Options
	watcher   sources.Options
	identity  identity.Options
}

func newSettings() *settings {
	return &settings{
		kube: kube.Options{UserAgent: "keyturn-watcher/" + version}, telemetry: telemetry.DefaultOptions(), watcher: sources.DefaultOptions(),
	}
}

func (s *settings) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.watcher.Cluster, "cluster", "", "`name` of the cluster in subjects and events, a DNS label")
	s.kube.AddFlags(flags)
	flags.StringSliceVar(&s.watcher.Namespaces, "namespaces", nil, "`namespaces` to watch, separated by commas; empty is all of them")
	s.connect.AddFlags(flags)
	s.telemetry.AddFlags(flags)
	s.watcher.AddFlags(flags)
	s.identity.AddFlags(flags)
}

// connectKubernetes sets the clients of the API server. A watcher of secret stores alone needs none.
func (s *settings) connectKubernetes() error {
	if s.watcher.StoresAlone() {
		return nil
	}
	var err error
	if s.watcher.Dynamic, err = s.kube.Dynamic(); err != nil {
		return err
	}
	s.watcher.Client, err = s.kube.Client()
	return err
}
