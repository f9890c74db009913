package main

import (
	"crypto/rand"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/keys"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// keysTimeout is how long one request may take before the command gives up, to be run again.
const keysTimeout = 30 * time.Second

func newKeysCommand() *cobra.Command {
	var namespace string
	api := kube.Options{UserAgent: "keyturn-keys/" + version, Timeout: keysTimeout}
	var natsUsers bool
	logging := telemetry.DefaultOptions()
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make the keys of an installation that are not there yet, as Secrets, and leave the others as they are.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(telemetry.Environment(cmd.Flags()), logging.Validate()); err != nil {
				return err
			}
			client, err := api.Client()
			if err != nil {
				return err
			}
			options := keys.Options{
				Secrets: client.CoreV1().Secrets(namespace), Random: rand.Reader, Logger: telemetry.NewLogger(os.Stderr, logging),
			}
			if natsUsers {
				options.NATSUsers = []string{"watcher", "actuator"}
			}
			return keys.Make(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	api.AddFlags(flags)
	flags.StringVar(&namespace, "namespace", "keyturn-system", "`namespace` of the Secrets")
	flags.StringVar(&logging.LogFormat, "log-format", logging.LogFormat, "`format` of the log: json or text")
	flags.StringVar(&logging.LogLevel, "log-level", logging.LogLevel, "least severe `level` that is logged: debug, info, warn or error")
	flags.BoolVar(&natsUsers, "nats-users", true, "make a NATS user for each program, for the NATS that the actuator embeds")
	return cmd
}
