// Package notify sends outcomes of rollouts and syncs to chat services and webhooks.
//
// # Guarantees
//
// Each sink reads the stream HISTORY with its own durable consumer. What is not sent yet waits there: it survives restarts and
// changes of the leader, and the stream bounds it. A sink that is slow, hangs or fails delays neither rollouts nor other sinks.
//
//   - A new sink starts with the next outcome, not with past ones.
//   - Delivery is at least once: a message is sent twice if the program ended before it knew that the first one was accepted.
//   - A sink sends one message at a time, in the order of the stream. After a crash, the in-flight outcomes come later.
//
// # Failure
//
// If a service is unreachable, busy (408, 425, 429) or broken (5xx), its sink retries the same message, after 1 second, doubled
// up to 5 minutes, or when Retry-After says. Later messages wait on the stream, so an outage costs one request at a time. After
// 30 attempts, about two hours, the sink gives the message up, so that a message that breaks the service cannot block the others.
// A message that the service refuses (any other status) is given up at once. A message that is given up is logged and counted,
// and its outcome stays on HISTORY.
//
// # Secrets
//
// The address of a webhook is its password. It appears in no log line, error, span or metric. Neither do the service's responses,
// which could quote it. Redirects are not followed.
package notify
