package commands

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/inspect"
)

// Replay returns the command that asks the actuator to process dead-lettered events again.
func Replay(program *Program) *cobra.Command {
	r := reading{program: program}
	var options inspect.ReplayOptions
	var creds string
	cmd := &cobra.Command{
		Use:   "replay [id]...",
		Short: "Make the actuator take dead-lettered events again, once their cause is fixed.",
		Example: "  actuator dead-letters replay 12 14\n" +
			"  actuator dead-letters replay --reason patch-denied --since 2h --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if options.IDs, err = letterIDs(args); err != nil {
				return err
			}
			options.StoresFrom = program.Settings.StoresFrom
			streams, err := r.streams(cmd.Context())
			if err != nil {
				return err
			}
			streams.Connect.CredsFile = cmp.Or(creds, streams.Connect.CredsFile)
			bus, disconnect, err := streams.OpenBus(cmd.Context())
			if err != nil {
				return err
			}
			defer disconnect()
			return inspect.Replay(cmd.Context(), options, bus, time.Now(), cmd.OutOrStdout())
		},
	}
	AddReplayFlags(cmd.Flags(), &options)
	cmd.Flags().StringVar(&creds, "replay-creds", "",
		"credentials `file` of the actuator's NATS user, which may request it; empty uses that of --nats-creds")
	return cmd
}

// AddReplayFlags adds the flags that select dead letters to replay.
func AddReplayFlags(flags *pflag.FlagSet, options *inspect.ReplayOptions) {
	flags.BoolVar(&options.All, "all", false, "all dead letters that have not been replayed")
	flags.StringVar(&options.Reason, "reason", "", "only dead letters with this `reason` that have not been replayed")
	flags.StringVarP(&options.Namespace, "namespace", "n", "", "only dead letters about sources in this `namespace` that have not been replayed")
	flags.StringVar(&options.Since, "since", "",
		"only dead letters since then that have not been replayed: a `duration` back from now, or a time such as 2006-01-02T15:04:05Z")
	flags.BoolVar(&options.DryRun, "dry-run", false, "list what would be replayed")
}

// letterIDs parses the ids of dead letters.
func letterIDs(args []string) ([]uint64, error) {
	ids := make([]uint64, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = strconv.ParseUint(arg, 10, 64); err != nil {
			return nil, fmt.Errorf("id %q: want a number, as dead-letters lists it", arg)
		}
	}
	return ids, nil
}
