package kinds

import (
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

var (
	storeEpoch = time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	storePath  = events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}
)

// minute returns the time n minutes after the epoch of these tests.
func minute(n int) time.Time { return storeEpoch.Add(time.Duration(n) * time.Minute) }

// written is the observation of a write that the audit log has a line about. It was read when it was written.
func written(version int64, operation string, at int) openbao.Observation {
	seen := audited(polled(version, openbao.Live, at, at), operation)
	seen.At = minute(at)
	return seen
}

// audited is an observation that the audit log has a line about.
func audited(seen openbao.Observation, operation string) openbao.Observation {
	seen.Operation = operation
	return seen
}

// polled is the observation of metadata that was read.
func polled(version int64, state openbao.State, at, read int) openbao.Observation {
	seen := openbao.Observation{
		Path: storePath, Engine: events.EngineKV, Version: version, State: state, ReadAt: minute(read), Received: minute(read).Add(time.Second),
	}
	if at >= 0 {
		seen.At = minute(at)
	}
	return seen
}

// role is the observation of a static role that was read, and was last rotated at a minute.
func role(at, read int) openbao.Observation {
	seen := polled(0, openbao.Live, at, read)
	seen.Engine = events.EngineDatabase
	return seen
}

// received is an observation that was received at another time than the store's clock shows.
func received(seen openbao.Observation, at int) openbao.Observation {
	seen.Received = minute(at)
	return seen
}

// polledAgain is an observation by a poll after another one.
func polledAgain(seen openbao.Observation, before int) openbao.Observation {
	seen.PolledBefore = minute(before)
	return seen
}

// requested is the observation of a request in KV v1.
func requested(state openbao.State, operation, request string, at int) openbao.Observation {
	return openbao.Observation{
		Path: storePath, Engine: events.EngineKV, State: state, At: minute(at), Request: request, Operation: operation, Received: minute(at),
	}
}

// revisionOf is the revision of a version that was created at a minute.
func revisionOf(n int64, at int) string { return strconv.FormatInt(n, 10) + "/" + nanos(at) }

// nanosAfter is a number of nanoseconds after a minute.
func nanosAfter(n int, d time.Duration) string {
	return strconv.FormatInt(minute(n).Add(d).UnixNano(), 10)
}

func nanos(n int) string { return strconv.FormatInt(minute(n).UnixNano(), 10) }
