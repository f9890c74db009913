package main

import (
	"maps"
	"slices"

	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
)

// builtins has the plugins that are in the binary. It is a [vault.BuiltinRegistry].
type builtins map[consts.PluginType]map[string]logical.Factory

func (b builtins) Contains(name string, kind consts.PluginType) bool {
	_, ok := b[kind][name]
	return ok
}

func (b builtins) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, ok := b[kind][name]
	return func() (any, error) { return factory, nil }, ok
}

func (b builtins) Keys(kind consts.PluginType) []string { return slices.Sorted(maps.Keys(b[kind])) }

func (b builtins) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, kind)
}
