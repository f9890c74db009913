package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// verify checks that the streams are declared as required, and that the server accepts the largest event. The error has a line for each wrong field,
// which wraps errStream, and for each stream that could not be read. patience is how long the error may take to go away by itself, or zero if it does
// not.
func verify(ctx context.Context, js jetstream.JetStream, cluster string) (patience time.Duration, err error) {
	var absent, wrong []error
	for _, want := range Declared(1) {
		stream, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			absent = append(absent, fmt.Errorf("%w: %s does not exist", errStream, want.Name))
		case IsSilence(err):
			return answeredWait, fmt.Errorf("reading stream %s: %w", want.Name, err)
		case err != nil:
			wrong = append(wrong, fmt.Errorf("reading stream %s: %w", want.Name, err))
		default:
			wrong = append(wrong, faults(stream.CachedInfo().Config, want, cluster)...)
		}
	}
	// The limit of an account arrives after the limit of the server, but before any response.
	if most := js.Conn().MaxPayload(); most < maxMessage {
		wrong = append(wrong,
			fmt.Errorf("the nats server or account: max_payload is %d, want %d or more, the size of the largest event", most, maxMessage))
	}
	if len(absent) > 0 && len(wrong) == 0 {
		patience = declaredWait
	}
	return patience, errors.Join(append(absent, wrong...)...)
}

const (
	declaredWait = 5 * time.Second // how long awaitDeclared waits for missing streams, as the program that declares them may be starting
	// answeredWait is how long awaitDeclared waits for a response: several servers elect a leader in seconds, but first most of them must run.
	answeredWait = time.Minute
	declaredPoll = 100 * time.Millisecond
)

// awaitDeclared verifies the streams. It waits while they do not exist, or while nobody responds.
func awaitDeclared(ctx context.Context, js jetstream.JetStream, cluster string, logger *slog.Logger) error {
	var since time.Time
	var last time.Duration
	var before error
	for {
		patience, err := verify(ctx, js, cluster)
		if patience != last {
			since, last = time.Now(), patience // the reason to wait has changed
		}
		switch {
		case before != nil && ctx.Err() != nil:
			return before // it is more specific than the expired context
		case err == nil || time.Since(since) >= patience:
			return err
		case before == nil:
			logger.WarnContext(ctx, "streams are not declared yet", "err", err, "wait", patience)
		}
		if before = err; !kube.Sleep(ctx, declaredPoll) {
			return before
		}
	}
}

// faults returns an error for each field of a stream that has a wrong value. Fields that it does not check are the
// operator's choice: replicas, placement, compression, retention.
func faults(have, want jetstream.StreamConfig, cluster string) []error {
	var errs []error
	subject := strings.TrimSuffix(want.Subjects[0], ">") + cluster + ".>"
	if !slices.ContainsFunc(have.Subjects, func(pattern string) bool { return covers(pattern, subject) }) {
		errs = append(errs, fmt.Errorf("%w: %s: subjects is %v, want one that covers %s", errStream, want.Name, have.Subjects, subject))
	}
	must := have
	must.Storage, must.Retention, must.Discard, must.MaxMsgsPerSubject = want.Storage, want.Retention, want.Discard, want.MaxMsgsPerSubject
	must.AllowDirect, must.AllowMsgTTL = true, have.AllowMsgTTL || want.AllowMsgTTL
	must.DiscardNewPerSubject, must.NoAck, must.Sealed, must.Mirror, must.SubjectTransform = false, false, false, nil, nil
	// With any of these, a client that may publish on one subject of the stream could use a header to delete other subjects or publish on them.
	must.AllowRollup, must.AllowMsgSchedules, must.AllowMsgCounter = false, false, false
	if want.Name != events.StreamChanges && (have.MaxMsgsPerSubject <= 0 || have.MaxMsgsPerSubject > want.MaxMsgsPerSubject) {
		must.MaxMsgsPerSubject = have.MaxMsgsPerSubject // an operator may keep more
	}
	if have.MaxMsgSize > 0 {
		must.MaxMsgSize = max(have.MaxMsgSize, maxMessage)
	}
	if want.Name == events.StreamChanges {
		// If the state of a source expired, the next change of the source would look like its creation.
		must.MaxAge, must.MaxMsgs, must.Discard = 0, min(have.MaxMsgs, 0), have.Discard
		if have.MaxConsumers > 0 {
			must.MaxConsumers = max(have.MaxConsumers, leastConsumers)
		}
		if have.MaxBytes > 0 {
			must.MaxBytes, must.Discard = max(have.MaxBytes, maxMessage), jetstream.DiscardNew
		}
	}
	for _, d := range streamDifferences(have, must) {
		if d.field == "discard" && have.MaxBytes > 0 && must.Discard == jetstream.DiscardNew {
			d.required += fmt.Sprintf(": with a max_bytes of %d, it would drop the state of some sources for that of others", have.MaxBytes)
		}
		errs = append(errs, fmt.Errorf("%w: %s: %s is %s, want %s", errStream, want.Name, d.field, d.found, d.required))
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
