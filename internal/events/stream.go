package events

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The names of the streams.
const (
	// StreamChanges keeps the last event on each subject: the state of each source, and for 30 days the last outcome of each
	// workload.
	StreamChanges = "CHANGES"
	// StreamHistory keeps every event for 30 days, also those that are superseded on StreamChanges. While it is more than half full, each
	// namespace has a share of it.
	StreamHistory = "HISTORY"
	// StreamDeadLetters keeps rejected messages for 30 days, with the reason.
	StreamDeadLetters = "DEADLETTERS"
)

// TombstoneTTL is how long StreamChanges keeps the event of a deleted source. A source that is created again within this time
// is compared with its previous content; after it the source is new.
const TombstoneTTL = 24 * time.Hour

// OutcomeTTL is how long StreamChanges keeps the last outcome of a workload. A workload that has none there is not being rolled.
const OutcomeTTL = retention

const (
	retention       = 30 * 24 * time.Hour
	historyBytes    = 512 << 20
	deadLetterBytes = 64 << 20
	// leastBytes is what the smallest stream reserves, and smaller is the factor between a stream and the next smaller one.
	leastBytes = 8 << 20
	smaller    = 8
	// maxMessage is the maximum size of a message, with what the publisher and the server add to its header.
	maxMessage = MaxEventSize + 2*MaxHeaderSize
)

// Streams returns the configurations of the three streams.
func Streams(replicas int) []jetstream.StreamConfig {
	base := func(name, description, subject string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Description: description, Subjects: []string{subject},
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
			Replicas: replicas, MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1,
			MaxMsgSize: maxMessage, AllowDirect: true, Duplicates: 2 * time.Minute,
		}
	}
	changes := base(StreamChanges, "The last state of every source and workload.", changesRoot+">")
	changes.MaxMsgsPerSubject = 1
	changes.AllowMsgTTL = true

	history := base(StreamHistory, "Every change and outcome of the last 30 days.", historyRoot+">")
	history.MaxAge, history.MaxBytes = retention, historyBytes
	history.Duplicates = 10 * time.Minute
	history.AllowMsgTTL = true

	dead := base(StreamDeadLetters, "Events that were refused, and why.", deadLetterRoot+">")
	dead.MaxAge, dead.MaxBytes = retention, deadLetterBytes
	return []jetstream.StreamConfig{changes, history, dead}
}

// Declare creates or updates the streams. It is for the program that embeds the server; on an external NATS the operator
// declares the streams, and the programs need no permission to. The sources, such as those of [StoreSources], are those of
// StreamChanges.
func Declare(ctx context.Context, js jetstream.JetStream, replicas int, sources ...*jetstream.StreamSource) error {
	for _, config := range Declared(replicas, sources...) {
		if err := declare(ctx, js, config); err != nil {
			return fmt.Errorf("declaring stream %s: %w", config.Name, err)
		}
	}
	return nil
}

// Declared returns the streams as Declare declares them.
func Declared(replicas int, sources ...*jetstream.StreamSource) []jetstream.StreamConfig {
	streams := Streams(replicas)
	for i := range streams {
		if streams[i].Name == StreamChanges {
			streams[i].Sources = sources
		}
	}
	return streams
}

// declare creates or updates a stream. A single server that is too small for what the stream reserves gets a smaller stream, which forgets
// sooner.
func declare(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig) error {
	if stream, err := js.Stream(ctx, config.Name); err == nil {
		config = keepTTL(stream.CachedInfo().Config, config)
	}
	for {
		_, err := js.CreateOrUpdateStream(ctx, config)
		if err == nil || isStorage(err) && exists(ctx, js, config.Name) {
			return nil
		}
		if !isStorage(err) || config.Replicas > 1 || config.MaxBytes/smaller < leastBytes {
			return err
		}
		config.MaxBytes /= smaller
	}
}

// keepTTL returns what is wanted of a stream, without message TTLs if it is StreamHistory and has none yet. A server does not turn them off
// again, so the version that declared it would not start any more after a rollback. Without them only less is kept of what is beyond the share of a
// namespace.
func keepTTL(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	if want.Name == StreamHistory {
		want.AllowMsgTTL = have.AllowMsgTTL
	}
	return want
}

// exists reports whether there is such a stream. A server that is short of storage refuses any update of it, also one that changes
// nothing; Open verifies it then.
func exists(ctx context.Context, js jetstream.JetStream, name string) bool {
	_, err := js.Stream(ctx, name)
	return err == nil
}
