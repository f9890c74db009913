package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
)

// askTimeout is how long a command may take.
const askTimeout = 20 * time.Second

func ask(ctx context.Context, s *stage, out *report) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	command := "keyturn explain deployment/web -n " + namespace
	args := append(strings.Fields(command)[1:], "--output", "wide", "--cluster", cluster,
		"--kubeconfig", s.plane.Kubeconfig(), "--nats-url", s.programs.NATSURL())
	explained, err := exec.CommandContext(ctx, s.programs.KeyturnBinary(), args...).Output()
	out.block("$ "+command, string(explained))
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	for _, said := range []string{"secret/db", "configmap/settings", "the workload was rolled for this change"} {
		if !strings.Contains(string(explained), said) {
			return fmt.Errorf("%s does not print %q", command, said)
		}
	}
	// It was rolled twice, and each rollout has an Event when it ends.
	told, err := s.kubernetesEvents(ctx, "Deployment", "web", 2)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, event := range told {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", event.LastTimestamp.Format(time.TimeOnly), event.Type, event.Reason, event.Message)
	}
	// Writing to a buffer cannot fail.
	_ = table.Flush()
	out.block("Kubernetes Events of deployment/web", text.String())
	return err
}

// kubernetesEvents waits for a number of Keyturn's Kubernetes Events about an object, and returns all of them, oldest first.
func (s *stage) kubernetesEvents(ctx context.Context, kind, name string, wanted int) ([]corev1.Event, error) {
	var found []corev1.Event
	about := fields.Set{"involvedObject.name": name, "involvedObject.kind": kind, "source": "keyturn"}
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := s.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
		if err != nil {
			return false, err
		}
		found = list.Items
		return len(found) >= wanted, nil
	})
	// Their timestamps only have whole seconds.
	slices.SortFunc(found, func(a, b corev1.Event) int { return events.CompareVersions(a.ResourceVersion, b.ResourceVersion) })
	if err != nil {
		return found, fmt.Errorf("found %d Kubernetes Events of %s %s, want %d: %w", len(found), kind, name, wanted, err)
	}
	return found, nil
}
