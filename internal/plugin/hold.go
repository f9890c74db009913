package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// onHold is the reason in outcomes of a workload that waits for the end of a hold.
const onHold = "on-hold"

// holdOptions are the flags of the command hold.
type holdOptions struct {
	// reason is the text for people.
	reason string
	// overwrite replaces another hold.
	overwrite bool
}

func (p *Plugin) hold() *cobra.Command {
	var options holdOptions
	cmd := p.annotatingCommand("hold <kind>/<name>...",
		"Hold the rolls of workloads, of all workloads of a namespace, or for a Secret or ConfigMap.",
		"  kubectl keyturn hold deployment/web --reason \"load test, until Ada ends it\"\n"+
			"  kubectl keyturn hold namespace/shop --dry-run",
		func(ctx context.Context, a *annotating, args []string) error {
			if events.HoldText(options.reason) == "" {
				return errors.New("--reason: is empty, which holds nothing; want who holds it, and until when")
			}
			return a.each(args, func(o *object) error { return a.hold(ctx, o, options) })
		})
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringVar(&options.reason, "reason", "held with kubectl keyturn", "`text` for people: who holds it, why, and until when")
	cmd.Flags().BoolVar(&options.overwrite, "overwrite", false, "replace the text of an existing hold")
	return cmd
}

// hold puts an object on hold. It returns an error if its kind cannot be on hold, or if it already is for another reason,
// unless options.overwrite is set.
func (a *annotating) hold(ctx context.Context, o *object, options holdOptions) error {
	if err := a.checkHold(ctx, o); err != nil {
		return err
	}
	before, err := o.hold(ctx)
	if err != nil {
		return err
	}
	text := events.HoldText(options.reason)
	c := change{annotation: events.AnnotationHold, value: &options.reason, reason: onHold, holds: true, done: "held, until it is released: " + text}
	if before != "" && before != text {
		if !options.overwrite {
			return fmt.Errorf("%s is on hold already: %s; give --overwrite to replace that", o, before)
		}
		c.done += ", instead of: " + before
	}
	return a.change(ctx, o, c)
}

func (p *Plugin) rollNow() *cobra.Command {
	cmd := p.annotatingCommand("roll-now <kind>/<name>...",
		"Roll workloads now for what is pending, whatever hold, window, interval or hourly limit applies.",
		"  kubectl keyturn roll-now deployment/web",
		func(ctx context.Context, a *annotating, args []string) error {
			return a.each(args, func(o *object) error {
				if err := a.checkRoll(ctx, o); err != nil {
					return err
				}
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
