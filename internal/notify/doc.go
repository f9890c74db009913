// Package notify sends outcomes of rollouts and syncs to chat services and webhooks. A Caller replaces rollouts: it calls a webhook for
// each change of a source instead.
//
// # Guarantees
//
// Each sink reads the stream HISTORY with its own durable consumer. Pending outcomes wait there, so they survive restarts and changes of the leader.
// An outcome that the stream drops before it is sent is lost, and counted. A slow or failing sink delays neither rollouts nor other sinks.
//
//   - A new sink starts with the next outcome, not with past ones.
//   - Delivery is at least once: a message is sent twice if the program ends before the response is acked on the stream.
//   - A sink sends one message at a time, in the order of the stream. Parked messages come later, and so do in-flight ones after a crash.
//
// # Failure
//
// If a service is unreachable, busy (408, 425, 429) or broken (5xx), its sink retries the message, after 1 second, doubled each time, or after
// Retry-After. After 5 attempts, the message is parked on the stream, because it may be the one that breaks the service, and the sink continues with
// the next. A parked message is retried after a minute, then after twice the time each, up to 15 minutes, and given up after about three days. During
// an outage, there is one request at a time, and at most 256 in 15 minutes. A message that the service refuses (any other status) is given up at
// once. A message that is given up is logged and counted, and its outcome stays on HISTORY.
//
// By default, a sink reports a held workload only if people must end the wait, and not if it ends by itself: in a rotation of 500 workloads, a
// failure would be reported after all of these.
//
// # Secrets
//
// The address of a webhook is its password. It appears in no log line, error, span or metric, and neither do the service's responses, which could
// quote it. Redirects are not followed. Libraries of chat services quote it in their errors, and send without a context or timeout.
//
// A template is a text with ${field}. Package text/template calls methods by name, so the linker would keep those of every type: 20 MB.
package notify
