package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The names of the streams.
const (
	// StreamChanges holds the last event on every subject: the state of every source, and the last outcome at every workload.
	StreamChanges = "CHANGES"
	// StreamHistory holds every event for a time, also those that are superseded on StreamChanges.
	StreamHistory = "HISTORY"
	// StreamDeadLetters holds the messages that were refused, with the reason.
	StreamDeadLetters = "DEADLETTERS"
)

// TombstoneTTL is how long the event of a deleted source stays on StreamChanges. A source that is created again within it
// is compared with what it was; later it is a new one.
const TombstoneTTL = 24 * time.Hour

const (
	keep            = 30 * 24 * time.Hour
	historyBytes    = 512 << 20
	deadLetterBytes = 64 << 20
	// maxMessage is the largest message of ours: the data, the header, and what the server and the publisher add to it.
	maxMessage = MaxEventSize + 2*MaxHeaderSize
)

// Streams are the streams as they should be declared.
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
	history.MaxAge, history.MaxBytes = keep, historyBytes
	history.Duplicates = 10 * time.Minute

	dead := base(StreamDeadLetters, "Events that were refused, and why.", deadLetterRoot+">")
	dead.MaxAge, dead.MaxBytes = keep, deadLetterBytes
	return []jetstream.StreamConfig{changes, history, dead}
}

// Declare creates the streams, or updates them to what they should be. It is for the program that embeds the server; with
// a NATS of its own the streams are declared by its operator, and the programs need no right to do it. StreamChanges takes in
// the sources, such as those of [StoreSources].
func Declare(ctx context.Context, js jetstream.JetStream, replicas int, sources ...*jetstream.StreamSource) error {
	for _, config := range Streams(replicas) {
		if config.Name == StreamChanges {
			config.Sources = sources
		}
		if _, err := js.CreateOrUpdateStream(ctx, config); err != nil {
			return fmt.Errorf("declaring stream %s: %w", config.Name, err)
		}
	}
	return nil
}

// Verify checks that the streams are declared so that the programs of the cluster can rely on them. It reports every
// difference that matters, one line each. Each wraps ErrStream; a stream that could not be read does not.
func Verify(ctx context.Context, js jetstream.JetStream, cluster string) error {
	_, err := verify(ctx, js, cluster)
	return err
}

// verify tells too whether what is wrong is only that streams do not exist.
func verify(ctx context.Context, js jetstream.JetStream, cluster string) (missing bool, err error) {
	var absent, wrong []error
	for _, want := range Streams(1) {
		stream, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			absent = append(absent, fmt.Errorf("%w: %s does not exist", ErrStream, want.Name))
		case err != nil:
			wrong = append(wrong, fmt.Errorf("reading stream %s: %w", want.Name, err))
		default:
			wrong = append(wrong, differences(stream.CachedInfo().Config, want, cluster)...)
		}
	}
	return len(absent) > 0 && len(wrong) == 0, errors.Join(append(absent, wrong...)...)
}

const (
	// declaredWait is how long streams that do not exist are waited for: whoever starts with them may be declaring them.
	declaredWait = 5 * time.Second
	declaredPoll = 100 * time.Millisecond
)

// verifyDeclared is Verify, for a program that starts beside the one that declares the streams.
func verifyDeclared(ctx context.Context, js jetstream.JetStream, cluster string, logger *slog.Logger) error {
	timeout := time.After(declaredWait)
	poll := time.NewTicker(declaredPoll)
	defer poll.Stop()
	var absent error
	for {
		missing, err := verify(ctx, js, cluster)
		switch {
		case absent != nil && ctx.Err() != nil:
			return absent // which says more than that a question had no time to be answered
		case !missing:
			return err
		case absent == nil:
			logger.WarnContext(ctx, "streams are not declared yet", "err", err, "wait", declaredWait)
		}
		absent = err
		select {
		case <-poll.C:
		case <-timeout:
			return absent
		case <-ctx.Done():
			return absent
		}
	}
}

// differences lists what of a stream is not as it must be. What is not listed is the operator's to choose: replicas,
// placement, compression, how long and how much of it is kept.
func differences(have, want jetstream.StreamConfig, cluster string) []error {
	var errs []error
	must := func(holds bool, field string, found, required any) {
		if !holds {
			errs = append(errs, fmt.Errorf("%w: %s: %s is %v, must be %v", ErrStream, want.Name, field, found, required))
		}
	}
	subject := strings.TrimSuffix(want.Subjects[0], ">") + cluster + ".>"
	covered := slices.ContainsFunc(have.Subjects, func(pattern string) bool { return covers(pattern, subject) })
	must(covered, "subjects", have.Subjects, "such that one of them covers "+subject)
	must(have.Storage == want.Storage, "storage", have.Storage, want.Storage)
	must(have.Retention == want.Retention, "retention", have.Retention, want.Retention)
	must(have.Discard == want.Discard, "discard", have.Discard, want.Discard)
	must(!have.DiscardNewPerSubject, "discard_new_per_subject", have.DiscardNewPerSubject, false)
	must(have.MaxMsgsPerSubject == want.MaxMsgsPerSubject, "max_msgs_per_subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	must(have.AllowDirect, "allow_direct", have.AllowDirect, true)
	must(!have.NoAck, "no_ack", have.NoAck, false)
	must(!have.Sealed, "sealed", have.Sealed, false)
	must(have.Mirror == nil, "mirror", "set", "unset")
	must(have.SubjectTransform == nil, "subject_transform", "set", "unset")
	must(have.MaxMsgSize < 1 || have.MaxMsgSize >= maxMessage, "max_msg_size", have.MaxMsgSize, fmt.Sprintf("at least %d", maxMessage))
	if want.Name == StreamChanges {
		// A state that ages out is forgotten: the next change of its source would be taken for its first.
		must(have.MaxAge == 0, "max_age", have.MaxAge, "0")
		must(have.MaxMsgs < 1, "max_msgs", have.MaxMsgs, -1)
		must(have.AllowMsgTTL, "allow_msg_ttl", have.AllowMsgTTL, true)
	}
	return errs
}

// covers tells whether every subject that matches the second pattern matches the first one too.
func covers(pattern, wanted string) bool {
	have, want := strings.Split(pattern, "."), strings.Split(wanted, ".")
	for i, token := range have {
		switch {
		case i >= len(want):
			return false
		case token == ">":
			return true
		case token == "*" && want[i] != ">", token == want[i]:
		default:
			return false
		}
	}
	return len(have) == len(want)
}
