// Package notify sends outcomes of rollouts and syncs to chat services and webhooks. A Caller is for those who want no rollouts: it calls a
// webhook for each change of a source instead.
//
// # Guarantees
//
// Each sink reads the stream HISTORY with its own durable consumer. What is not sent yet waits there: it survives restarts and
// changes of the leader, and the stream bounds it: what the stream drops before it is sent is lost, and counted. A sink that is
// slow, hangs or fails delays neither rollouts nor other sinks.
//
//   - A new sink starts with the next outcome, not with past ones.
//   - Delivery is at least once: a message is sent twice if the program ended before it knew that the first one was accepted.
//   - A sink sends one message at a time, in the order of the stream. Parked ones come later, and after a crash the in-flight ones.
//
// # Failure
//
// If a service is unreachable, busy (408, 425, 429) or broken (5xx), its sink retries the same message, after 1 second, doubled
// each time, or when Retry-After says. After 5 attempts the message is parked on the stream, and the sink goes on with the next
// one: what breaks the service may be this message. It is retried once a minute later, then after twice the time, up to every 15
// minutes, and given up after about three days. An outage costs one request at a time, and 256 in 15 minutes.
//
// A message that the service refuses (any other status) is given up at once. A message that is given up is logged and counted,
// and its outcome stays on HISTORY.
//
// # Secrets
//
// The address of a webhook is its password. It appears in no log line, error, span or metric. Neither do the service's responses,
// which could quote it. Redirects are not followed.
package notify
