package events

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
)

// newBackoff returns delays of 1 second, doubled up to 1 minute. Each is longer by a random amount of up to a fifth, so that
// programs that failed together do not retry together.
//
// Package wait is the only package of Kubernetes that events may import. It has no API types, so this package stays free of
// them. depguard rejects the rest of k8s.io.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 7, Cap: time.Minute}
}

// newConsumerBackoff returns the delays between the attempts of a consumer: half a second, doubled up to 4 seconds. A program has few
// consumers, and nothing is told, posted or projected until they have found the stream again.
func newConsumerBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 4 * time.Second}
}

// redeliveryDelay returns the delay before an event that failed is redelivered. It depends only on the number of deliveries so
// far, so that it keeps growing when another process takes over.
func redeliveryDelay(deliveries int) time.Duration {
	return backoff.Nth(newBackoff(), deliveries)
}
