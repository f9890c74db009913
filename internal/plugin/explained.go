package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/commands"
)

// explained has the parts of an explanation that are printed.
type explained struct {
	// Pending are the sources with changes that the workload is still to be rolled for.
	Pending []string `json:"pending"`
	// States say whether the workload is rolled at all, and what prevents that now, with the reason as in outcomes.
	States []struct {
		Reason string `json:"reason"`
		Text   string `json:"text"`
	} `json:"states"`
}

// explanation returns the explanation of a workload. It returns nil if the object is not a workload, or if the explanation fails,
// which needs more permissions than annotating.
func (a *annotating) explanation(ctx context.Context, o *object) *explained {
	if slices.Contains(holdable, o.kind) {
		return nil // It may concern hundreds of workloads.
	}
	if a.unreached {
		return nil
	}
	found, err := a.explains(ctx, o)
	if err != nil {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "What is pending is not known: %v\n", err)
		var answer apierrors.APIStatus
		a.unreached = !errors.As(err, &answer) // A response of the API server is about this object only.
		return nil
	}
	return &found
}

// explain runs the command explain.
func (a *annotating) explain(ctx context.Context, o *object) (explained, error) {
	var e explained
	cmd, err := a.explaining(ctx)
	if err != nil {
		return e, err
	}
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := cmd.RunE(cmd, []string{o.String()}); err != nil {
		return e, err
	}
	return e, json.Unmarshal(out.Bytes(), &e)
}

// explaining returns the command explain, with the settings of the installation.
func (a *annotating) explaining(ctx context.Context) (*cobra.Command, error) {
	cmd, _, err := a.cmd.Root().Find([]string{"explain"})
	if err != nil || a.prepared {
		return cmd, errors.Join(err, a.unprepared)
	}
	a.prepared = true
	cmd.InheritedFlags() // adds those of the plugin
	cmd.SetContext(ctx)
	a.unprepared = errors.Join(cmd.Flags().Set("namespace", a.namespace), cmd.Flags().Set("output", "json"), commands.Environment(cmd.Flags()))
	if a.unprepared == nil {
		a.unprepared = a.plugin.prepare(cmd, nil) //nolint:contextcheck // it uses the context of the command
	}
	return cmd, a.unprepared
}
