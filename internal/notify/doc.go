// Package notify tells people what became of changes: outcomes of rollouts and of syncs go to chat services and webhooks.
//
// # Guarantees
//
// Each sink reads the outcomes from the stream HISTORY by a durable consumer of its own. So nothing waits in this process: what is
// not sent yet is on the stream, survives restarts and changes of the leader, and is bounded by what the stream keeps. A sink
// that is slow, hangs or fails delays neither rollouts nor other sinks.
//
//   - A sink that is new begins with the next outcome, not with the past.
//   - An outcome is sent at least once. It is sent twice where the program ended before it knew that the first was taken.
//   - A sink sends one message at a time, in the order of the stream, but for what a program that died had in hand: that comes later.
//
// # Failure
//
// A sink that cannot be reached, is busy (408, 425, 429) or has a fault (5xx) gets the same message again, after 1 second, doubled
// each time up to 5 minutes, or when its Retry-After says. The others wait for it on the stream: an outage costs one request at a
// time. A message that failed 30 times, in about two hours, is given up, so that one that breaks the service cannot stop
// those behind it. What a sink refuses (any other status) is given up at once: it would be refused again. What is given up is
// logged and counted, and HISTORY has it.
//
// # Secrets
//
// The address of a webhook is its password. It is in no log line, error, span or metric, nor is what a service answered, which could
// quote it. Redirects are not followed.
package notify
