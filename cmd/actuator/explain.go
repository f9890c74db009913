package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
)

func newExplainCommand(s *settings) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "explain <kind>/<name>",
		Short: "Show what a workload depends on, what it was last rolled for, and what would happen now, with the reason.",
		Example: "  actuator explain deployment/web -n shop --cluster prod\n" +
			"  actuator explain deployment/web -n shop --cluster prod --kubeconfig prod.kubeconfig --stream FLEET",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.validateTraceURL(); err != nil {
				return err
			}
			client, err := s.process.Kube.Client()
			if err != nil {
				return err
			}
			reader, closeReader, err := s.openReader(cmd.Context())
			if err != nil {
				return err
			}
			defer closeReader()
			s.actuator.Client = client
			return actuate.Explain(cmd.Context(), s.actuator, reader, args[0], namespace, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "`namespace` of the workload")
	cmd.Flags().BoolVar(&s.actuator.RollAll, "roll-all", false, "explain the decisions of an actuator with --roll-all")
	s.addTraceURL(cmd.Flags())
	s.addStream(cmd.Flags())
	return cmd
}

// addTraceURL adds the flag of the commands that print traces.
func (s *settings) addTraceURL(flags *pflag.FlagSet) {
	flags.StringVar(&s.actuator.TraceURL, "trace-url", "", "`URL` of a trace, with {traceID} for its ID, such as http://jaeger:16686/trace/{traceID}; empty prints the ID alone")
}

func (s *settings) validateTraceURL() error {
	if err := events.ValidateTraceURL(s.actuator.TraceURL); err != nil {
		return fmt.Errorf("--trace-url: %w", err)
	}
	return nil
}
