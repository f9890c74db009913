package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// StreamGuard periodically compares the streams with their required configurations. Create one with NewStreamGuard.
type StreamGuard struct {
	js      jetstream.JetStream
	cluster string
	logger  *slog.Logger
	// declared contains the streams as in Declare. If empty, an operator declares them, and may choose the fields that differences ignores.
	declared []jetstream.StreamConfig
	now      func() time.Time
	told     *events.Notices // about fields that remain wrong
}

// sayAgain is how often a persisting fault is logged.
const sayAgain = time.Hour

// remedy is the remedy for a field that a server cannot revert. No user of the embedded NATS may delete a stream.
const remedy = "while the watcher runs, scale the actuator to 0, delete the claims of its volumes and scale it up again: " +
	"see A stream cannot be repaired in docs/operate/operations.md"

// NewStreamGuard returns a StreamGuard for the streams of a cluster. It restores those in declared in every field. If declared is empty, it only
// warns about streams of an operator, which the programs may not change. A nil logger discards.
func NewStreamGuard(js jetstream.JetStream, cluster string, declared []jetstream.StreamConfig, logger *slog.Logger) *StreamGuard {
	return &StreamGuard{js: js, cluster: cluster, logger: orDiscard(logger), declared: declared, now: time.Now, told: events.NewNotices(sayAgain)}
}

// Run compares after each interval, until ctx is done.
func (g *StreamGuard) Run(ctx context.Context, interval time.Duration) {
	for kube.Sleep(ctx, interval) {
		g.Compare(ctx)
	}
}

// Compare compares all streams once, repairs them if possible and logs differences. It must not be called while Run runs.
func (g *StreamGuard) Compare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, guardInterval)
	defer cancel()
	if len(g.declared) == 0 {
		if _, err := verify(ctx, g.js, g.cluster); err != nil && ctx.Err() == nil && !IsSilence(err) && g.told.Due(err.Error(), g.now()) {
			g.logger.WarnContext(ctx, "streams are not as required; their operator must declare them again", "err", err)
		}
		return
	}
	for _, want := range g.declared {
		if err := g.keep(ctx, want); err != nil && ctx.Err() == nil && !IsSilence(err) && g.told.Due(want.Name+err.Error(), g.now()) {
			g.logger.WarnContext(ctx, "stream cannot be kept as required", "stream", want.Name, "err", err)
		}
	}
}

func (g *StreamGuard) keep(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := g.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// The server of another process may have started with an empty volume. A Follower notices that the stream is another one.
		if err = create(ctx, g.js, want); err == nil {
			g.logger.WarnContext(ctx, "created a stream that was lost", "stream", want.Name)
		}
		return err
	}
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	want, now, err := repair(ctx, g.js, have, want)
	if err != nil {
		return err
	}
	left := make(map[string]bool)
	for _, d := range streamDifferences(now, want) {
		left[d.field] = true
	}
	for _, d := range streamDifferences(have, want) {
		about := []any{"stream", want.Name, "field", d.field, "found", d.found, "required", d.required}
		switch {
		case !left[d.field]:
			g.logger.WarnContext(ctx, "corrected a stream that differed from its declaration", about...)
		case g.told.Due(want.Name+d.field, g.now()):
			g.logger.ErrorContext(ctx, "stream is not as required, and cannot be repaired", append(about, "remedy", remedy)...)
		}
	}
	return nil
}

// difference is a field, by its name in JSON, in which a stream or a consumer differs from the wanted configuration.
type difference struct{ field, found, required string }

// differences compares the configurations of two streams or consumers.
func differences[Config any](have, want Config) []difference {
	var list []difference
	found, required := reflect.ValueOf(have), reflect.ValueOf(want)
	for i := range found.NumField() {
		a, b := found.Field(i), required.Field(i)
		if reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		name, _, _ := strings.Cut(found.Type().Field(i).Tag.Get("json"), ",")
		list = append(list, difference{field: name, found: shown(a), required: shown(b)})
	}
	return list
}

// normalized returns the configuration in the form that Declared returns, without additions by servers.
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
			// The client does the same before it sends the configuration.
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

// shown formats a value for a log line or an error. It dereferences pointers.
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
