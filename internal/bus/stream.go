package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	retention       = 30 * 24 * time.Hour
	historyBytes    = 512 << 20
	deadLetterBytes = 64 << 20
	leastBytes      = 8 << 20 // the size of the smallest stream
	smaller         = 8       // the factor between the sizes that are tried
	// historyPerSubject is how many events HISTORY keeps of an object. A workload that rolls 30 times an hour, the default of --max-rolls-per-hour,
	// has 43,200 outcomes in 30 days. At their usual size, these take about an eighth of the stream.
	historyPerSubject = 50_000
	// deadLettersPerSubject is how many letters DEADLETTERS keeps of an object: as many of the largest size as fit.
	deadLettersPerSubject = 100
	// maxMessage is the maximum size of a message, including the headers that the publisher and the server add.
	maxMessage = events.MaxEventSize + 2*events.MaxHeaderSize
)

// Declared returns the configurations of the three streams. The sources, such as those of [StoreSources], become the sources of StreamChanges.
func Declared(replicas int, sources ...*jetstream.StreamSource) []jetstream.StreamConfig {
	base := func(name, description, subject string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Description: description, Subjects: []string{subject},
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld,
			Replicas: replicas, MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, MaxMsgsPerSubject: -1,
			MaxMsgSize: maxMessage, AllowDirect: true, Duplicates: 2 * time.Minute,
		}
	}
	changes := base(events.StreamChanges, "The last state of every source and workload.", events.ChangesRoot+">")
	changes.MaxMsgsPerSubject, changes.AllowMsgTTL, changes.Sources = 1, true, sources

	history := base(events.StreamHistory, "Every change and outcome of the last 30 days.", events.HistoryRoot+">")
	history.MaxAge, history.MaxBytes = retention, historyBytes
	history.MaxMsgsPerSubject = historyPerSubject
	history.Duplicates = 10 * time.Minute
	history.AllowMsgTTL = true

	dead := base(events.StreamDeadLetters, "Events that were refused, and why.", events.DeadLetterRoot+">")
	dead.MaxAge, dead.MaxBytes, dead.MaxMsgsPerSubject = retention, deadLetterBytes, deadLettersPerSubject
	return []jetstream.StreamConfig{changes, history, dead}
}

// soleKey is a key in the metadata of StreamChanges on a NATS on which no other cluster publishes. Only the user that declares the streams may change
// it.
const soleKey = "keyturn.dev/sole-cluster"

// Sole returns the streams for a NATS on which no other cluster publishes. There, Claim takes the name from any other claim.
func Sole(streams []jetstream.StreamConfig) []jetstream.StreamConfig {
	streams = slices.Clone(streams)
	for i := range streams {
		if streams[i].Name == events.StreamChanges {
			streams[i].Metadata = map[string]string{soleKey: "true"}
		}
	}
	return streams
}

// Declare creates or updates the streams. It is for the program that embeds the server. On an external NATS, the operator declares the streams, and
// the programs need no permission to do so.
func Declare(ctx context.Context, js jetstream.JetStream, streams []jetstream.StreamConfig) error {
	for _, config := range streams {
		if err := declare(ctx, js, config); err != nil {
			return fmt.Errorf("declaring stream %s: %w", config.Name, err)
		}
	}
	return nil
}

// declare creates or updates a stream. Settings that the server cannot revert stay, so that the program starts. Its StreamGuard reports them.
func declare(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return create(ctx, js, want)
	}
	if err != nil {
		return err // it may exist: repair needs to know it
	}
	if _, _, err = repair(ctx, js, stream.CachedInfo().Config, want); isStorage(err) {
		return nil // it exists; Open verifies it
	}
	return err
}

// create creates a stream with the largest size that the server has room for. The error names the exceeded limit of the account.
func create(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	var err error
	for _, want.MaxBytes = range sizes(want) {
		if _, err = js.CreateOrUpdateStream(ctx, want); !isStorage(err) {
			break
		}
	}
	return withLimit(ctx, js, want, err)
}

// repair updates a stream to the wanted configuration, in every field that the server allows to change. It returns the configuration that was wanted
// in the end, which is smaller if the server has no room, and the current configuration of the stream. A server without storage refuses every update
// of a stream, even without changes, and this is no reason to make a stream smaller.
func repair(ctx context.Context, js jetstream.JetStream, have, want jetstream.StreamConfig) (wanted, now jetstream.StreamConfig, err error) {
	now = have
	for _, want.MaxBytes = range sizes(want) {
		if len(streamDifferences(have, want)) == 0 {
			return want, have, nil
		}
		var stream jetstream.Stream
		stream, err = js.UpdateStream(ctx, want)
		if _, refused := errors.AsType[*jetstream.APIError](err); refused && !isStorage(err) {
			stream, err = js.UpdateStream(ctx, irrevocable(have, want))
		}
		if err == nil {
			now = stream.CachedInfo().Config
		}
		if !isStorage(err) || have.MaxBytes >= want.MaxBytes {
			break
		}
	}
	return want, now, err
}

// sizes returns the sizes of a stream to try, in order. On a single small server, a stream is smaller and drops its events sooner.
func sizes(want jetstream.StreamConfig) []int64 {
	list := []int64{want.MaxBytes}
	for size := want.MaxBytes / smaller; want.Replicas <= 1 && size >= leastBytes; size /= smaller {
		list = append(list, size)
	}
	return list
}

// StoreSources returns the sources of StreamChanges for clusters that publish in another JetStream domain, over a leaf node.
func StoreSources(domain string, clusters []string) []*jetstream.StreamSource {
	sources := make([]*jetstream.StreamSource, 0, len(clusters))
	for _, filter := range events.StoreFilters(clusters) {
		sources = append(sources, &jetstream.StreamSource{Name: events.StreamChanges, Domain: domain, FilterSubject: filter})
	}
	return sources
}

// Carries returns an error if StreamChanges does not receive the KindOpenBao events of the clusters.
func (b *Bus) Carries(clusters []string) error {
	return carries(b.changes.CachedInfo().Config, clusters)
}

// carries checks that the stream receives the KindOpenBao events of the clusters: by one of its subjects, or by a source.
func carries(config jetstream.StreamConfig, clusters []string) error {
	var errs []error
	for _, filter := range events.StoreFilters(clusters) {
		sourced := slices.ContainsFunc(config.Sources, func(source *jetstream.StreamSource) bool {
			return source.FilterSubject == "" && len(source.SubjectTransforms) == 0 || covers(source.FilterSubject, filter)
		})
		published := slices.ContainsFunc(config.Subjects, func(pattern string) bool { return covers(pattern, filter) })
		if !sourced && !published {
			errs = append(errs, fmt.Errorf("%w: %s does not receive %s: neither its subjects (%v) nor its sources cover it",
				errStream, config.Name, filter, config.Subjects))
		}
	}
	return errors.Join(errs...)
}

// streamDifferences returns every field of the client's type in which a stream differs from Declare's configuration.
func streamDifferences(have, want jetstream.StreamConfig) []difference {
	return differences(normalized(have), normalized(want))
}
