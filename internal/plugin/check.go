package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// checkInterval is the interval of checks with --wait, and of status with --watch.
const checkInterval = 2 * time.Second

// result is the result of a check.
type result string

const (
	good    result = "ok"
	warning result = "warning"
	failure result = "failed"
)

// finding is the result of a check, with the remedy unless all is well.
type finding struct {
	result           result
	about, text, fix string
}

// write writes a line. Names from the cluster, such as the tag of an image or the holder of a Lease, may contain anything.
func (f finding) write(out io.Writer) {
	line := fmt.Sprintf("%-7s  %s: %s", f.result, f.about, f.text)
	if f.fix != "" {
		line += "; " + f.fix
	}
	fmt.Fprintln(out, events.Printable(line))
}

func (p *Plugin) checkCommand() *cobra.Command {
	var pre bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Check whether all parts of an installation work, with remedies for those that do not.",
		Example: "  kubectl keyturn check --pre\n  kubectl keyturn check --wait 2m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.open(cmd.Flags()); err != nil {
				return err
			}
			checks := p.checkInstalled
			if pre {
				checks = p.checkBefore
			}
			found := wait(cmd.Context(), patience, checks)
			failed := 0
			for _, f := range found {
				f.write(cmd.OutOrStdout())
				if f.result == failure {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d checks have failed", failed, len(found))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&pre, "pre", false, "check instead whether Keyturn can be installed in the namespace of --installation, by you")
	cmd.Flags().DurationVar(&patience, "wait", 0, "check again until nothing has failed, for this long at most")
	return cmd
}

// wait returns the findings of checks, once nothing fails or it has waited long enough.
func wait(ctx context.Context, patience time.Duration, checks func(context.Context) []finding) []finding {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		found := checks(ctx)
		fails := slices.ContainsFunc(found, func(f finding) bool { return f.result == failure })
		if !fails || !kube.Sleep(waiting, checkInterval) {
			return found
		}
	}
}

func (p *Plugin) checkBefore(ctx context.Context) []finding {
	return []finding{p.checkServer(), p.checkInstaller(ctx), p.checkPolicyKind(ctx)}
}

func (p *Plugin) checkInstalled(ctx context.Context) []finding {
	found := []finding{p.checkServer()}
	given := p.cluster
	if err := p.find(ctx); err != nil {
		return append(found, finding{failure, "installation", err.Error(), "install Keyturn, or name its namespace with --installation"})
	}
	if given == "" {
		defer func() { p.cluster = "" }() // Another attempt reads it again.
	}
	i := p.installed
	found = append(found, finding{good, "installation", "in namespace " + i.namespace, ""}, p.checkReader(ctx))
	programs, err := i.programs(ctx)
	if err != nil {
		found = append(found, finding{warning, "programs", err.Error(), "the rights of the accounts and the keys are not checked"})
	} else {
		found = append(found, i.checkPrograms(programs))
		found = append(found, i.checkAccounts(ctx)...)
		found = append(found, p.checkKeys(ctx))
	}
	found = append(found, p.checkPolicies(ctx)...)
	found = append(found, i.checkLease(ctx))
	found = append(found, p.checkStreams(ctx)...)
	return append(found, p.checkMonitors(ctx))
}
