package plugin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/inspect"
)

// deadLetters returns the command that lists dead letters, with the one that replays them.
func (p *Plugin) deadLetters(program *commands.Program) *cobra.Command {
	cmd := commands.DeadLetters(program)
	cmd.AddCommand(p.replay())
	return cmd
}

// replay returns the command that replays dead letters. Only the actuator's NATS user may request a replay, so the command runs in the
// actuator's pod.
func (p *Plugin) replay() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay [id]...",
		Short: "Make the actuator take dead-lettered events again, once their cause is fixed. It runs in the actuator's pod, like kubectl exec.",
		Example: "  kubectl keyturn dead-letters replay 12 14\n" +
			"  kubectl keyturn dead-letters replay --reason patch-denied --since 2h --dry-run",
		RunE: p.runReplay,
	}
	commands.AddReplayFlags(cmd.Flags(), &inspect.ReplayOptions{}) // The command in the pod reads them.
	return cmd
}

func (p *Plugin) runReplay(cmd *cobra.Command, ids []string) error {
	if err := p.access.open(p.version, nil); err != nil {
		return err
	}
	installed, err := find(cmd.Context(), p.access.typed, p.namespace)
	if err != nil {
		return err
	}
	pod, err := installed.pod(cmd.Context())
	if err != nil {
		return err
	}
	request := p.access.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(installed.namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: installed.container.Name, Command: replayInPod(cmd, ids), Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	sockets, err := remotecommand.NewWebSocketExecutor(p.access.config, http.MethodGet, request.URL().String())
	if err != nil {
		return fmt.Errorf("running a command in pod %s: %w", pod, err)
	}
	// API servers before 1.30 and some proxies do not support websockets for this.
	plain, err := remotecommand.NewSPDYExecutor(p.access.config, http.MethodPost, request.URL())
	if err != nil {
		return fmt.Errorf("running a command in pod %s: %w", pod, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(sockets, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("running a command in pod %s: %w", pod, err)
	}
	err = executor.StreamWithContext(cmd.Context(), remotecommand.StreamOptions{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()})
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "is forbidden"): // the error has no type of its own
		return right{"create", "pods/exec", installed.namespace}.missing()
	}
	return fmt.Errorf("actuator dead-letters replay in pod %s of namespace %s: %w", pod, installed.namespace, err)
}

// replayInPod returns the command to run in the pod, with the flags that were given.
func replayInPod(cmd *cobra.Command, ids []string) []string {
	inPod := []string{"actuator", "dead-letters", "replay"}
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			inPod = append(inPod, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return append(append(inPod, "--"), ids...)
}
