package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrConflict is wrapped by the error of Bus.PublishChange if the last event on the subject is not the expected one:
	// another watcher of the cluster was faster. Read the subject with Bus.Last and compare again.
	ErrConflict = errors.New("another event was published on this subject")
	// ErrTooLarge is wrapped by the error of whatever publishes if the server or the stream accepts no message of this size, because its limit was
	// lowered since Open checked it. It may be raised again.
	ErrTooLarge = errors.New("the event is too large for nats")
	// ErrClaimed is wrapped by the errors of Bus.Claim and Bus.CheckClaim if another cluster has the name.
	ErrClaimed = errors.New("cluster name is already claimed")
	// ErrRedelivered finishes a delivery whose event was delivered again. The later delivery is acknowledged for both.
	ErrRedelivered = errors.New("the event was delivered again")
)

var (
	errNotStored = fmt.Errorf("%w, and is gone", ErrConflict) // the ErrConflict for a subject that has no event
	// errStream is wrapped by the errors of Open and Bus.Consume: a stream is missing, or a field of it is wrong.
	errStream = errors.New("stream is not declared as required")
	// errConsumer is wrapped by the errors of Bus.Consume: a field of the durable consumer is wrong, and the server rejects changing it.
	errConsumer = errors.New("consumer is not declared as required")
	// errHeadersOnly finishes a delivery without data. The event is redelivered when the consumer, which sends headers only, is repaired.
	errHeadersOnly = errors.New("the consumer sends headers only")
	// errUnasked means that a consumer has messages but no request for them. A request is lost if it reaches a server of a cluster before that server
	// knows the consumer, which is on another server. The server responds that there are no responders, and the iterator ignores this.
	errUnasked = errors.New("the consumer was not asked for its messages")
	// errLost means that a reading's consumer was lost with its server, or that its messages were lost in transit.
	errLost  = fmt.Errorf("the consumer is silent, and messages are missing: %w", nats.ErrTimeout)
	errFound = errors.New("found") // ends a reading early
	// errOtherStream means that the stream has changed since a Follower read it: it was restored or created again, or messages were removed.
	errOtherStream = errors.New("the stream has lost events")
	errReconnected = errors.New("the connection was lost") // a Follower may have missed events while it had no connection
)

// These are error codes of the server without names in nats.go.
const (
	errCodeNoClusterLeader       jetstream.ErrorCode = 10008 // JSClusterNotAvailErr
	errCodeAccountResources      jetstream.ErrorCode = 10002 // the account has reached its limit
	errCodeInsufficientResources jetstream.ErrorCode = 10023 // the server has reached its limit
	errCodeMaxStreams            jetstream.ErrorCode = 10027 // the account has reached its number of streams
	errCodeStorageResources      jetstream.ErrorCode = 10047 // the stream reserves more than there is
	errCodeStoreFailed           jetstream.ErrorCode = 10077 // the stream has reached its limit
	errCodeMaxBytesRequired      jetstream.ErrorCode = 10113 // the account accepts no stream without a size
	errCodeMaxAckPending         jetstream.ErrorCode = 10121 // the server, the account or the stream limits a consumer to fewer events in flight
	errCodeMaxStreamBytes        jetstream.ErrorCode = 10122 // the account accepts no stream of this size
	errCodeDuplicateInProcess    jetstream.ErrorCode = 10158 // the stream is storing a message with the same id
)

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	answer, ok := errors.AsType[*jetstream.APIError](err)
	return ok && slices.Contains(codes, answer.ErrorCode)
}

// isStorage reports whether a server has no storage for a message or a stream.
func isStorage(err error) bool {
	return hasCode(err, errCodeAccountResources, errCodeInsufficientResources, errCodeStorageResources, errCodeStoreFailed)
}

// isConflict reports whether the subject has another last sequence, or the stream is storing a message with this id.
func isConflict(err error) bool {
	return hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, errCodeDuplicateInProcess)
}

// IsSilence reports whether an error means that no server responded, as while the servers of a stream or a cluster have no leader, or while a server
// is starting JetStream. The request is worth repeating.
func IsSilence(err error) bool {
	return hasCode(err, errCodeNoClusterLeader) || slices.ContainsFunc([]error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, jetstream.ErrAsyncPublishTimeout,
		jetstream.ErrJetStreamNotEnabled,
	}, func(silence error) bool { return errors.Is(err, silence) })
}
