package plugin

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// onHold is the reason of a workload that waits for the end of a hold.
const onHold = "on-hold"

func (p *Plugin) hold() *cobra.Command {
	var reason string
	cmd := p.annotatingCommand("hold <kind>/<name>...",
		"Hold the rolls of workloads, of all workloads of a namespace, or for a Secret or ConfigMap.",
		"  kubectl keyturn hold deployment/web --reason \"load test, until Ada ends it\"\n"+
			"  kubectl keyturn hold namespace/shop --dry-run",
		func(ctx context.Context, a *annotating, args []string) error {
			if events.HoldText(reason) == "" {
				return errors.New("--reason: is empty, which holds nothing; want who holds it, and until when")
			}
			return a.each(args, func(o *object) error {
				return a.change(ctx, o, change{
					annotation: events.AnnotationHold, value: &reason, reason: onHold, done: "held, until it is released: " + events.HoldText(reason),
				})
			})
		})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringVar(&reason, "reason", "held with kubectl keyturn", "`text` for people: who holds it, why, and until when")
	return cmd
}

func (p *Plugin) rollNow() *cobra.Command {
	cmd := p.annotatingCommand("roll-now <kind>/<name>...",
		"Roll workloads now for what is pending, whatever hold, window, interval or hourly limit applies.",
		"  kubectl keyturn roll-now deployment/web",
		func(ctx context.Context, a *annotating, args []string) error {
			return a.each(args, func(o *object) error {
				value := time.Now().UTC().Format(time.RFC3339Nano)
				return a.change(ctx, o, change{annotation: workload.AnnotationRollNow, value: &value, done: "asked to roll now"})
			})
		})
	cmd.Args = cobra.MinimumNArgs(1)
	return cmd
}

func (p *Plugin) release() *cobra.Command {
	var all bool
	cmd := p.annotatingCommand("release [<kind>/<name>...]",
		"Release what is on hold. What is pending rolls once, at once.",
		"  kubectl keyturn release deployment/web\n"+
			"  kubectl keyturn release --all -n shop",
		func(ctx context.Context, a *annotating, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("want either <kind>/<name>, or --all for all workloads of the namespace")
			}
			if all {
				var err error
				if args, err = a.held(ctx); err != nil {
					return err
				}
			}
			return a.each(args, func(o *object) error {
				return a.change(ctx, o, change{annotation: events.AnnotationHold, done: "not on hold by an annotation of its own"})
			})
		})
	cmd.Flags().BoolVar(&all, "all", false, "all workloads of the namespace that are on hold, and not the namespace itself")
	return cmd
}
