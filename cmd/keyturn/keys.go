package main

import (
	"crypto/rand"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/program"
)

// keysTimeout bounds each request. After a timeout, the command fails and can be run again.
const keysTimeout = 30 * time.Second

// newKeysCommand returns the command of the job that creates the keys of an installation with two pods.
func newKeysCommand() *cobra.Command {
	api := kube.Options{UserAgent: "keyturn-keys/" + version, Timeout: keysTimeout}
	logging := program.DefaultLogOptions()
	var namespace string
	var natsUsers, natsRoutes, natsTLS, audit, projector bool
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Create the Secrets with the keys of an installation. Existing ones are left unchanged, except certificates that are due.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logging.Validate(); err != nil {
				return err
			}
			client, err := api.Client()
			if err != nil {
				return err
			}
			options := embedded.KeyOptions{
				Secrets: client.CoreV1().Secrets(namespace), Now: time.Now, Random: rand.Reader,
				Audit: audit, Logger: program.NewLogger(cmd.ErrOrStderr(), logging),
			}
			if natsUsers {
				options.Storage, options.NATSUsers = true, []string{"watcher", "actuator", "reader"}
				if projector {
					options.NATSUsers = append(options.NATSUsers, "projector")
				}
			}
			if natsRoutes {
				options.RoutesNamespace = namespace
			}
			if natsTLS {
				options.TLSNamespace, options.Updates = namespace, client.CoreV1().Secrets(namespace)
			}
			return embedded.MakeKeys(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	api.AddFlags(flags)
	logging.AddFlags(flags)
	flags.StringVar(&namespace, "namespace", "keyturn-system", "`namespace` of the Secrets")
	flags.BoolVar(&natsUsers, "nats-users", true,
		"also create a NATS user for each program and one that only reads, and the key of the storage, for the NATS beside the actuator")
	flags.BoolVar(&audit, "audit", false,
		"also create the keys of a watcher that only receives the audit of secret stores: a fingerprint key, and with --nats-users a NATS user")
	flags.BoolVar(&projector, "projector", false, "with --nats-users also create a NATS user for the projector")
	flags.BoolVar(&natsTLS, "nats-tls", true,
		"also create a certificate for the NATS beside the actuator, valid for 3 years, and its CA, and renew them when they are due")
	flags.BoolVar(&natsRoutes, "nats-routes", false,
		"also create a certificate for the routes between the NATS servers of several actuators, valid for 10 years")
	return cmd
}
