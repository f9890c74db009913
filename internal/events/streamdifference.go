package events

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// streamDifference is a field in which a stream differs from what is wanted.
type streamDifference struct {
	field           string
	found, required any
}

// streamDifferences returns every field in which a stream differs from what Declare declares. It covers all fields of the client's type, so it
// includes those that later versions of the client add.
func streamDifferences(have, want jetstream.StreamConfig) []streamDifference {
	have, want = normalized(have), normalized(want)
	var list []streamDifference
	found, required := reflect.ValueOf(have), reflect.ValueOf(want)
	for i := range found.NumField() {
		a, b := found.Field(i), required.Field(i)
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		name, _, _ := strings.Cut(found.Type().Field(i).Tag.Get("json"), ",")
		list = append(list, streamDifference{field: name, found: shown(a), required: shown(b)})
	}
	return list
}

// normalized returns the configuration in the form that Streams returns, without what servers add to it.
func normalized(config jetstream.StreamConfig) jetstream.StreamConfig {
	config.Metadata = maps.Clone(config.Metadata)
	maps.DeleteFunc(config.Metadata, func(key, _ string) bool { return strings.HasPrefix(key, "_nats.") })
	if len(config.Metadata) == 0 {
		config.Metadata = nil
	}
	config.Subjects = slices.Sorted(slices.Values(config.Subjects))
	var sources []*jetstream.StreamSource
	for _, source := range config.Sources {
		plain := *source
		if plain.Domain != "" {
			// Do what the client does before it sends the configuration.
			plain.External, plain.Domain = &jetstream.ExternalStream{APIPrefix: "$JS." + plain.Domain + ".API"}, ""
		}
		sources = append(sources, &plain)
	}
	slices.SortFunc(sources, func(a, b *jetstream.StreamSource) int { return strings.Compare(a.FilterSubject, b.FilterSubject) })
	config.Sources = sources
	return config
}

// irrevocable returns the wanted configuration, except that the fields that a server cannot revert keep their values.
func irrevocable(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	want.Storage, want.Retention, want.FirstSeq, want.PersistMode = have.Storage, have.Retention, have.FirstSeq, have.PersistMode
	want.Sealed, want.DenyDelete, want.DenyPurge = have.Sealed, have.DenyDelete, have.DenyPurge
	want.AllowMsgSchedules, want.AllowMsgCounter = have.AllowMsgSchedules, have.AllowMsgCounter
	want.AllowMsgTTL = want.AllowMsgTTL || have.AllowMsgTTL
	want.AllowRollup = have.AllowRollup && have.AllowMsgSchedules // schedules need rollups
	return want
}

// shown formats a value for a log line. It dereferences pointers, whose addresses would say nothing.
func shown(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if sources, ok := reflect.TypeAssert[[]*jetstream.StreamSource](v); ok {
		names := make([]string, 0, len(sources))
		for _, source := range sources {
			names = append(names, source.Name+" "+source.FilterSubject)
		}
		return fmt.Sprint(names)
	}
	return fmt.Sprint(v.Interface())
}
