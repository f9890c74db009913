package program

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// claimTimeout bounds the requests to the stream.
	claimTimeout = 10 * time.Second
	// claimCheckInterval is the interval between claims, or checks, of the cluster's name.
	claimCheckInterval = time.Minute
	// takenInterval is how often a running program logs that another cluster has its name.
	takenInterval = time.Hour
)

// identity detects two clusters that are configured with the same name.
//
// A cluster is identified by the UID of its namespace kube-system. The watcher claims the cluster's name for that UID on the stream. At their start
// and every minute, both programs compare the claim with their own cluster. If another cluster has the name at the start, they end with an error that
// wraps bus.ErrClaimed. Later they only log it, because the key of the watcher's NATS user is enough to claim a name, and must not be enough to stop
// a program. On an embedded NATS, no other cluster can have the name, unless the NATS is a leaf node, and bus.Claim takes it back. A claim that the
// stream has lost, or that is a week old, is made again.
//
// The check needs permission to get that namespace. Without it, as in an installation that is restricted to some namespaces, the program logs a
// warning and runs unchecked.
type identity struct {
	// client reads the namespace kube-system. Nil means that the name stands for no cluster: nothing is claimed or checked.
	client kubernetes.Interface
	// replaces is the UID of the cluster that had this name before, empty if none did.
	replaces string
	// interval is claimCheckInterval, except in tests.
	interval time.Duration
	log      *slog.Logger
}

// keep repeats a claim or a check until ctx is done.
type keep func(ctx context.Context)

// claimName claims the name of the bus's cluster after the API server has responded. It returns an error only if another cluster has the name.
// Anything else, such as a missing permission on NATS, is logged, because the program can still run.
func claimName(ctx context.Context, i identity, b *bus.Bus) (keep, error) {
	return i.compare(ctx, b, b.Claim)
}

// checkName is like claimName, but does not claim the name. It returns no error if the name is unclaimed.
func checkName(ctx context.Context, i identity, b *bus.Bus) (keep, error) {
	return i.compare(ctx, b, b.CheckClaim)
}

// compare calls claim with the cluster's UID, and returns a keep that repeats the call.
func (i identity) compare(ctx context.Context, b *bus.Bus, claim func(ctx context.Context, uid, replaces string) error) (keep, error) {
	uid := i.uid(ctx)
	if uid == "" {
		return func(context.Context) {}, nil
	}
	failing := false // Further failures are not logged.
	try := func(ctx context.Context) error {
		bounded, cancel := context.WithTimeout(ctx, claimTimeout)
		defer cancel()
		err := claim(bounded, uid, i.replaces)
		if errors.Is(err, bus.ErrClaimed) {
			return err
		}
		if err != nil && ctx.Err() == nil && !failing {
			i.log.WarnContext(ctx, "cluster name neither claimed nor checked", "cluster", b.Cluster(), "err", err, "retry_in", i.interval)
		}
		failing = err != nil
		return nil
	}
	return func(ctx context.Context) {
		// The stream may lose the claim, and another cluster may then take the name.
		var told time.Time
		for kube.Sleep(ctx, i.interval) {
			if err := try(ctx); err != nil && time.Since(told) >= takenInterval {
				told = time.Now()
				i.log.ErrorContext(ctx, "another cluster has taken the name of this one, whose next start will fail", "err", err)
			}
		}
	}, try(ctx)
}

// uid returns the UID of the cluster. It is empty if there is no cluster, if permission is missing, or if ctx has ended.
func (i identity) uid(ctx context.Context) string {
	if i.client == nil {
		return ""
	}
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
	for {
		namespace, err := i.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case err == nil:
			return string(namespace.UID)
		case apierrors.IsForbidden(err):
			i.log.WarnContext(ctx, "cluster identity not checked: no permission to get namespace kube-system", "err", err)
			return ""
		case ctx.Err() != nil:
			return ""
		}
		delay := delays.Step()
		i.log.WarnContext(ctx, "namespace kube-system cannot be read", "err", err, "retry_in", delay)
		if !kube.Sleep(ctx, delay) {
			return ""
		}
	}
}
