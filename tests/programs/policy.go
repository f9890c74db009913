package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// policyPatience is how long the API server may take to enforce a policy.
const policyPatience = time.Minute

// ReadPolicy returns the admission policies in a folder of deploy, and their bindings, for an actuator with a strategy of Reloader, empty for one
// without --reloader. That which AwaitPolicy waits for is the last.
func ReadPolicy(deploy, strategy string) (string, error) {
	path := filepath.Join(deploy, "admission", "actuator.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the admission policy: %w", err)
	}
	const variable = "- name: reloader\n      expression: \"''\"\n"
	if strings.Count(string(content), variable) != 1 {
		return "", fmt.Errorf("%s: has no variable reloader, want it once", path)
	}
	var policies strings.Builder
	for _, other := range []string{"protected.yaml", "keys.yaml"} {
		content, err := os.ReadFile(filepath.Join(deploy, "admission", other))
		if err != nil {
			return "", fmt.Errorf("reading the admission policy: %w", err)
		}
		policies.Write(content)
		policies.WriteString("---\n")
	}
	policies.WriteString(strings.Replace(string(content), variable, strings.Replace(variable, "''", "'"+strategy+"'", 1), 1))
	return policies.String(), nil
}

// confine applies the admission policy beside the manifest with the rights, and waits until the API server enforces it.
func confine(ctx context.Context, cp *testbed.ControlPlane, options Options) error {
	deploy := filepath.Dir(filepath.Dir(options.RBAC))
	policy, err := ReadPolicy(deploy, options.ReloaderPolicy)
	if err != nil {
		return err
	}
	if err := cp.ApplyYAML(ctx, strings.NewReader(policy)); err != nil {
		return err
	}
	config, err := cp.ServiceAccountConfig(ctx, SystemNamespace, "keyturn-actuator")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the actuator: %w", err)
	}
	return AwaitPolicy(ctx, client, SystemNamespace)
}

// AwaitPolicy waits until the API server enforces the admission policy of the account of a client, whose Lease is in a namespace.
func AwaitPolicy(ctx context.Context, client kubernetes.Interface, namespace string) error {
	ctx, stop := running.WithTimeout(ctx, policyPatience)
	defer stop()
	var last error
	other := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "is-it-confined"}}
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoordinationV1().Leases(namespace).Create(ctx, other, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last != nil && strings.Contains(last.Error(), "ValidatingAdmissionPolicy"), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the admission policy: %w", errors.Join(context.Cause(ctx), last))
	}
	return nil
}
