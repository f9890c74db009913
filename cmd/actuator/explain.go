package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/program"
	"github.com/keyturn/keyturn/internal/workload"
)

func newExplainCommand(a *program.Actuator) *cobra.Command {
	var r reading
	var options inspect.ExplainOptions
	var namespace, access string
	var keys map[string]string
	cmd := &cobra.Command{
		Use:   "explain <kind>/<name>",
		Short: "Show what a workload depends on, what it was last rolled for, what it waits for, and what would happen now, with the reason.",
		Example: "  actuator explain deployment/web -n shop --cluster prod\n" +
			"  actuator explain deployment/web -n shop --cluster prod --kubeconfig prod.kubeconfig --stream FLEET",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.validateTraceURL(); err != nil {
				return err
			}
			var err error
			if options.Reading.Keys, err = annotations.Parse(keys); err != nil {
				return err
			}
			if options.Reading.Stores, err = workload.ReadStoreAccess(access); err != nil {
				return err
			}
			if options.Reading.Window, err = a.Actuate.Windows(); err != nil {
				return err
			}
			options.ReloadDelay = a.Actuate.ReloadDelay
			options.Reading.MinInterval, options.Reading.MaxRollsPerHour = a.Actuate.MinInterval, a.Actuate.MaxRollsPerHour
			if options.Kinds, err = a.Actuate.Kinds(); err != nil {
				return err
			}
			options.Reading.Owners, options.Reading.Unwatched = options.Kinds.Owners(), options.Kinds.Unwatched()
			client, err := a.Process.Kube.Client()
			if err != nil {
				return err
			}
			custom, err := a.Process.Kube.Dynamic()
			if err != nil {
				return err
			}
			reader, disconnect, err := r.from(a).OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			options.Now = time.Now()
			options.Origins = events.Origins{Cluster: a.Process.Cluster, StoresFrom: a.Actuate.StoresFrom}
			options.Clients.Typed, options.Clients.Dynamic, options.TraceURL = client, custom, r.traceURL
			return inspect.Explain(cmd.Context(), options, reader, args[0], namespace, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "default", "`namespace` of the workload")
	flags.StringVarP(&options.Output, "output", "o", "text", "output `format`: text, or json with the fields of the events as they are")
	flags.BoolVar(&options.Reading.All, "roll-all", false, "explain the decisions of an actuator with --roll-all")
	flags.BoolVar(&options.Reading.Reloader, "reloader", false, "explain the decisions of an actuator with --reloader")
	flags.BoolVar(&options.Reading.InPlace, "reload-in-place", false, "explain the decisions of an actuator with --reload-in-place")
	flags.DurationVar(&a.Actuate.ReloadDelay, "reload-delay", a.Actuate.ReloadDelay, "explain the decisions of an actuator with this `duration`")
	annotations.AddFlag(flags, &keys)
	flags.StringVar(&access, "store-access", "", "explain the decisions of an actuator with this `file`")
	flags.StringVar(&a.Actuate.TargetsConfig, "targets-config", "", "explain the decisions of an actuator with this `file` or folder")
	flags.StringVar(&a.Actuate.Window, "window", "", "explain the decisions of an actuator with these `windows`")
	flags.DurationVar(&a.Actuate.MinInterval, "min-interval", 0, "explain the decisions of an actuator with --min-interval")
	flags.IntVar(&a.Actuate.MaxRollsPerHour, "max-rolls-per-hour", a.Actuate.MaxRollsPerHour,
		"explain the decisions of an actuator with this `number`")
	flags.StringVar((*string)(&options.Policy.Create), "roll-on-create", "auto", "explain the decisions of an actuator with --roll-on-create")
	flags.BoolVar(&options.Policy.Delete, "roll-on-delete", false, "explain the decisions of an actuator with --roll-on-delete")
	flags.StringSliceVar(&a.Actuate.IgnoreWorkloadKinds, "ignore-workload-kinds", nil,
		"explain the decisions of an actuator with --ignore-workload-kinds")
	flags.BoolVar(&a.Actuate.ArgoRollouts, "argo-rollouts", false, "explain the decisions of an actuator with --argo-rollouts")
	flags.BoolVar(&a.Actuate.StartCronJobs, "start-cronjobs", false, "explain the decisions of an actuator with --start-cronjobs")
	flags.BoolVar(&a.Actuate.RecreateJobs, "recreate-jobs", false, "explain the decisions of an actuator with --recreate-jobs")
	r.addTraceURL(flags)
	r.streams.AddStreamFlag(flags)
	return cmd
}
