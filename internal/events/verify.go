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

// verify checks that the streams are declared as the programs of the cluster require. The error has a line for each wrong
// field, which wraps errStream, and for each stream that could not be read. missing reports whether all that is wrong is
// that streams do not exist.
func verify(ctx context.Context, js jetstream.JetStream, cluster string) (missing bool, err error) {
	var absent, wrong []error
	for _, want := range Streams(1) {
		stream, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			absent = append(absent, fmt.Errorf("%w: %s does not exist", errStream, want.Name))
		case err != nil:
			wrong = append(wrong, fmt.Errorf("reading stream %s: %w", want.Name, err))
		default:
			wrong = append(wrong, differences(stream.CachedInfo().Config, want, cluster)...)
		}
	}
	return len(absent) > 0 && len(wrong) == 0, errors.Join(append(absent, wrong...)...)
}

const (
	// declaredWait is how long awaitDeclared waits for streams that do not exist: the program that declares them may just
	// be starting.
	declaredWait = 5 * time.Second
	declaredPoll = 100 * time.Millisecond
)

// awaitDeclared verifies the streams. It waits if they do not exist yet.
func awaitDeclared(ctx context.Context, js jetstream.JetStream, cluster string, logger *slog.Logger) error {
	timeout := time.After(declaredWait)
	poll := time.NewTicker(declaredPoll)
	defer poll.Stop()
	var absent error
	for {
		missing, err := verify(ctx, js, cluster)
		switch {
		case absent != nil && ctx.Err() != nil:
			return absent // it says more than the expired context
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

// differences returns an error for each field of a stream that has a wrong value. Fields that it does not check are the
// operator's choice: replicas, placement, compression, retention.
func differences(have, want jetstream.StreamConfig, cluster string) []error {
	var errs []error
	must := func(holds bool, field string, found, required any) {
		if !holds {
			errs = append(errs, fmt.Errorf("%w: %s: %s is %v, want %v", errStream, want.Name, field, found, required))
		}
	}
	subject := strings.TrimSuffix(want.Subjects[0], ">") + cluster + ".>"
	covered := slices.ContainsFunc(have.Subjects, func(pattern string) bool { return covers(pattern, subject) })
	must(covered, "subjects", have.Subjects, "one that covers "+subject)
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
		// If the state of a source expired, the next change of the source would look like its creation.
		must(have.MaxAge == 0, "max_age", have.MaxAge, "0")
		must(have.MaxMsgs < 1, "max_msgs", have.MaxMsgs, -1)
		must(have.AllowMsgTTL, "allow_msg_ttl", have.AllowMsgTTL, true)
	}
	return errs
}

// covers reports whether pattern matches every subject that wanted matches.
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
