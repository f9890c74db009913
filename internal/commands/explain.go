package commands

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/internal/workload"
)

// Explain returns the command that explains a workload.
func Explain(program *Program) *cobra.Command {
	r, settings := reading{program: program}, program.Settings
	options := inspect.ExplainOptions{View: inspect.View{Narrow: program.Narrow}}
	var namespace, access, webhook string
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
			if err := settings.ValidatePolicy(); err != nil {
				return err
			}
			options.Policy.Create, options.Policy.Delete = settings.RollOnCreate, settings.RollOnDelete
			var err error
			if options.Reading.Keys, err = annotations.Parse(keys); err != nil {
				return err
			}
			if options.Reading.Stores, err = workload.ReadStoreAccess(access); err != nil {
				return err
			}
			if options.Reading.Window, err = settings.Windows(); err != nil {
				return err
			}
			options.ReloadDelay = settings.ReloadDelay
			options.Reading.MinInterval, options.Reading.MaxRollsPerHour = settings.MinInterval, settings.MaxRollsPerHour
			if options.Kinds, err = settings.Kinds(); err != nil {
				return err
			}
			options.Reading.Owners, options.Reading.Unwatched = options.Kinds.Owners(), options.Kinds.Unwatched()
			options.Namespaces, options.IgnoreNamespaces, options.DryRun = settings.Namespaces, settings.IgnoreNamespaces, settings.DryRun
			options.Posts = webhook != ""
			if options.Clients, err = program.Clients(); err != nil {
				return err
			}
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			reader, disconnect, err := streams.OpenReader(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			if program.Unknown != nil {
				options.Unknown = program.Unknown()
			}
			options.Now, options.TraceURL = time.Now(), r.traceURL
			options.Origins = events.Origins{Cluster: streams.Cluster, StoresFrom: settings.StoresFrom}
			return inspect.Explain(cmd.Context(), options, reader, args[0], namespace, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", "default", "`namespace` of the workload")
	AddOutput(cmd, &options.View.Format, "; json and yaml have the fields of the events as they are", formats...)
	flags.BoolVar(&options.Reading.All, "roll-all", false, "explain the decisions of an actuator with --roll-all")
	flags.BoolVar(&options.Reading.Reloader, "reloader", false, "explain the decisions of an actuator with --reloader")
	flags.BoolVar(&options.Reading.InPlace, "reload-in-place", false, "explain the decisions of an actuator with --reload-in-place")
	flags.DurationVar(&settings.ReloadDelay, "reload-delay", settings.ReloadDelay, "explain the decisions of an actuator with this `duration`")
	annotations.AddFlag(flags, &keys)
	flags.StringVar(&access, "store-access", "", "explain the decisions of an actuator with this `file`")
	flags.StringVar(&settings.TargetsConfig, "targets-config", "", "explain the decisions of an actuator with this `file` or folder")
	flags.StringVar(&settings.Window, "window", "", "explain the decisions of an actuator with these `windows`")
	flags.DurationVar(&settings.MinInterval, "min-interval", 0, "explain the decisions of an actuator with --min-interval")
	flags.IntVar(&settings.MaxRollsPerHour, "max-rolls-per-hour", settings.MaxRollsPerHour,
		"explain the decisions of an actuator with this `number`")
	flags.StringVar((*string)(&settings.RollOnCreate), "roll-on-create", string(settings.RollOnCreate),
		"explain the decisions of an actuator with --roll-on-create")
	flags.BoolVar(&settings.RollOnDelete, "roll-on-delete", false, "explain the decisions of an actuator with --roll-on-delete")
	flags.StringSliceVar(&settings.IgnoreNamespaces, "ignore-namespaces", nil, "explain the decisions of an actuator with --ignore-namespaces")
	flags.BoolVar(&settings.DryRun, "dry-run", false, "explain the decisions of an actuator with --dry-run")
	flags.StringVar(&webhook, "webhook-url", "", "explain the decisions of an actuator with this `URL`")
	flags.StringSliceVar(&settings.IgnoreWorkloadKinds, "ignore-workload-kinds", nil,
		"explain the decisions of an actuator with --ignore-workload-kinds")
	flags.BoolVar(&settings.ArgoRollouts, "argo-rollouts", false, "explain the decisions of an actuator with --argo-rollouts")
	flags.BoolVar(&settings.StartCronJobs, "start-cronjobs", false, "explain the decisions of an actuator with --start-cronjobs")
	flags.BoolVar(&settings.RecreateJobs, "recreate-jobs", false, "explain the decisions of an actuator with --recreate-jobs")
	r.addTraceURL(flags)
	r.addStream(flags)
	return cmd
}
