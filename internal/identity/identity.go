// Package identity detects two clusters that are configured with the same name.
//
// A cluster is identified by the UID of its namespace kube-system. The watcher claims the cluster's name for that UID on the stream. At
// their start and every minute after that, both programs compare the claim with their own cluster. If another cluster has the name, they
// end with an error that wraps events.ErrClaimed. A claim that the stream has lost, or that is a week old, is made again.
//
// The check needs permission to get that namespace. Without it, as in an installation that is restricted to some namespaces,
// the program logs a warning once and runs unchecked.
package identity

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
)

// Options configure Claim and Check.
type Options struct {
	// Client reads the namespace kube-system. Nil means that the name has no cluster behind it: nothing is claimed or checked.
	Client kubernetes.Interface
	// Replaces is the UID of the cluster that had this name before. Empty if none did.
	Replaces string
	// Interval is how often the name is claimed or checked again. Zero means one minute.
	Interval time.Duration
	// Logger is required.
	Logger *slog.Logger
}

// Keep claims or checks the name of a cluster repeatedly until ctx is done. It returns an error, which wraps events.ErrClaimed, as soon
// as another cluster has the name.
type Keep func(ctx context.Context) error

// newBackoff returns the delays between requests to an API server that does not respond: 1 to 30 seconds.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
}

// AddFlags adds the flag of Replaces.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Replaces, "replaces-cluster", "",
		"`UID` of the namespace kube-system of the cluster that this one replaces under the same name")
}

// Claim claims the name of the bus's cluster. It waits until the API server responds or ctx is done. It returns an error, which
// wraps events.ErrClaimed, only if another cluster has the name. Any other error, such as a missing permission on NATS, is only
// logged, because the program can run nevertheless.
func Claim(ctx context.Context, options Options, bus *events.Bus) (Keep, error) {
	return options.identify(ctx, bus, bus.Claim)
}

// Check is like Claim, but does not claim the name. It returns no error if the name is unclaimed.
func Check(ctx context.Context, options Options, bus *events.Bus) (Keep, error) {
	return options.identify(ctx, bus, bus.CheckClaim)
}

// identify calls claim with the cluster's UID, and returns a Keep that repeats that.
func (o Options) identify(ctx context.Context, bus *events.Bus, claim func(ctx context.Context, uid, replaces string) error) (Keep, error) {
	uid := o.uid(ctx)
	if uid == "" {
		return func(context.Context) error { return nil }, nil
	}
	k := &keeper{cluster: bus.Cluster(), interval: o.Interval, log: o.Logger, claim: func(ctx context.Context) error {
		return claim(ctx, uid, o.Replaces)
	}}
	if k.interval == 0 {
		k.interval = defaultInterval
	}
	return k.keep, k.try(ctx)
}

// uid returns the UID of the cluster. It is empty if there is no cluster, if permission is missing, or if ctx has ended.
func (o Options) uid(ctx context.Context) string {
	if o.Client == nil {
		return ""
	}
	delays := newBackoff()
	for {
		namespace, err := o.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case err == nil:
			return string(namespace.UID)
		case apierrors.IsForbidden(err):
			o.Logger.WarnContext(ctx, "cluster identity not checked: no permission to get namespace kube-system", "err", err)
			return ""
		case ctx.Err() != nil:
			return ""
		}
		delay := delays.Step()
		o.Logger.WarnContext(ctx, "namespace kube-system cannot be read", "err", err, "retry_in", delay)
		if !backoff.Sleep(ctx, delay) {
			return ""
		}
	}
}
