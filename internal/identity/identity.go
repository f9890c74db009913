// Package identity keeps two clusters that were given one name from being taken for one.
//
// A cluster is the one whose namespace kube-system has a certain UID. The watcher claims the name of its cluster on the
// stream for that UID, and both programs compare the claim with their own cluster when they start. A program whose cluster
// is another one than the claim says ends with an error that wraps events.ErrClaimed.
//
// The check needs the right to get that one namespace. Where it is missing, as where the programs may read single
// namespaces only, the log says so once, and there is no check.
package identity

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
)

// Options are what a cluster's identity is established with.
type Options struct {
	// Client talks to the API server of the cluster. Nil: there is no cluster behind the name, and nothing is checked.
	Client kubernetes.Interface
	// Replaces is the UID of the cluster that had the name before, and has it no more. Empty: none.
	Replaces string
	// Logger is told what keeps the check from being made. Required.
	Logger *slog.Logger
}

// retryAfter is how long the API server is left alone when it could not answer, at first and at most.
const (
	retryAfter    = time.Second
	retryAtLatest = 30 * time.Second
)

// claimWithin is how long the stream may take.
const claimWithin = 10 * time.Second

// AddFlags binds Replaces to its flag.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Replaces, "replaces-cluster", "", "`UID` of the namespace kube-system of the cluster that had the name before, where this one was built in its place")
}

// Claim claims the name of the bus's cluster, or finds it claimed. It waits for the API server, until ctx is done. The only
// error is one that wraps events.ErrClaimed: what else keeps the name from being claimed, as a right on NATS that is
// missing, is logged, and is no reason not to watch.
func Claim(ctx context.Context, options Options, bus *events.Bus) error {
	return options.identify(ctx, bus, bus.Claim)
}

// Check is Claim for a program that does not claim: a name that nobody has claimed yet is as good as its own.
func Check(ctx context.Context, options Options, bus *events.Bus) error {
	return options.identify(ctx, bus, bus.CheckClaim)
}

func (o Options) identify(ctx context.Context, bus *events.Bus, claim func(ctx context.Context, uid, replaces string) error) error {
	uid := o.uid(ctx)
	if uid == "" {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, claimWithin)
	defer cancel()
	err := claim(bounded, uid, o.Replaces)
	if errors.Is(err, events.ErrClaimed) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		o.Logger.WarnContext(ctx, "the name of the cluster could not be claimed or checked", "cluster", bus.Cluster(), "err", err)
	}
	return nil
}

// uid gives the UID of the cluster, or an empty one where it may not be known.
func (o Options) uid(ctx context.Context) string {
	if o.Client == nil {
		return ""
	}
	for delay := retryAfter; ; delay = min(2*delay, retryAtLatest) {
		namespace, err := o.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case err == nil:
			return string(namespace.UID)
		case apierrors.IsForbidden(err):
			o.Logger.WarnContext(ctx, "the cluster is not checked to be the one that has its name: that needs the right to get the namespace kube-system", "err", err)
			return ""
		case ctx.Err() != nil:
			return ""
		}
		o.Logger.WarnContext(ctx, "the namespace kube-system cannot be read yet", "err", err, "retry", delay)
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(delay):
		}
	}
}
