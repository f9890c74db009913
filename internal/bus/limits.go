package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// leastConsumers is the required limit of consumers for StreamChanges. A Follower has one for each of the four kinds of sources, twice while an epoch
// begins, and those of a killed program stay for a minute. The others belong to watchers, the webhook, the projector and users.
const leastConsumers = 16

// withLimit adds the exceeded limit of the account, with both numbers, to the error of a new stream. Only a user that declares streams may ask for
// the limits.
func withLimit(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, err error) error {
	if !hasCode(err, errCodeMaxStreams, errCodeMaxBytesRequired, errCodeMaxStreamBytes, errCodeStorageResources) {
		return err
	}
	account, failed := js.AccountInfo(ctx)
	if failed != nil || len(account.Tiers) > 0 { // No server of ours has accounts with tiers.
		return err // An error without the numbers is better than none.
	}
	if limit := exceeded(account, want, err); limit != "" {
		return fmt.Errorf("the nats account: %s: %w", limit, err)
	}
	return err
}

// exceeded returns the exceeded limit of an account, by its name in a server's configuration, given the server's error for a stream. It is empty if
// the server itself has no room, the size of which is unknown.
func exceeded(account *jetstream.AccountInfo, want jetstream.StreamConfig, err error) string {
	limits := account.Limits
	switch {
	case hasCode(err, errCodeMaxStreams):
		return fmt.Sprintf("max_streams is %d, want %d or more", limits.MaxStreams, max(account.Streams+1, len(Declared(1))))
	case hasCode(err, errCodeMaxBytesRequired):
		return fmt.Sprintf("max_bytes_required is true, and max_bytes of %s is %d", want.Name, want.MaxBytes)
	case hasCode(err, errCodeMaxStreamBytes):
		return fmt.Sprintf("disk_max_stream_bytes is %d, want %d or more", limits.StoreMaxStreamBytes, want.MaxBytes)
	}
	// The account reserves the size of one copy of a stream, and the limit is for all copies.
	need := (int64(account.ReservedStore) + max(want.MaxBytes, 1)) * int64(max(want.Replicas, 1))
	if limits.MaxStore <= 0 || need <= limits.MaxStore {
		return ""
	}
	return fmt.Sprintf("max_file is %d, want %d or more", limits.MaxStore, need)
}

// withConsumers adds the number of a stream's consumers to the error of a new consumer, if that is the limit.
func withConsumers(ctx context.Context, stream jetstream.Stream, err error) error {
	if !hasCode(err, jetstream.JSErrCodeMaximumConsumersLimit) {
		return err
	}
	info, failed := infoOf(ctx, stream)
	if failed != nil {
		return err
	}
	limit := fmt.Sprintf("the nats account or stream %s: max_consumers is %d", info.Config.Name, info.State.Consumers)
	if info.Config.Name == events.StreamChanges {
		limit += fmt.Sprintf(", want %d or more", leastConsumers)
	}
	return fmt.Errorf("%s: %w", limit, err)
}
