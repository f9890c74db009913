package tests

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/programs"
)

const recordAnnotation = "keyturn.dev/rolled"

// awaitRecords waits until each Deployment in the namespace has a record, as they have a few seconds after the actuator has begun. The rigs elect no
// leader, and then what changes while no actuator runs is found by the records alone.
func (r *rig) awaitRecords() {
	r.Helper()
	r.eventually("each Deployment has a record", func(ctx context.Context) bool {
		list, err := r.client.AppsV1().Deployments(r.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, deployment := range list.Items {
			if !strings.Contains(deployment.Annotations[recordAnnotation], "/") {
				return false
			}
		}
		return true
	})
}

// race is a change of a Secret and a write by which a workload comes to want it, both at once. It has the resourceVersions that they made.
type race struct {
	secret, deployment string
	// opts says that the write is an annotation; else it is a reference.
	opts           bool
	changed, asked uint64
}

// change changes the Secret.
func (c *race) change(ctx context.Context, r *rig) error {
	after, err := r.client.CoreV1().Secrets(r.namespace).Patch(ctx, c.secret, types.MergePatchType,
		[]byte(`{"data":{"password":"YWZ0ZXI="}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("changing the secret: %w", err)
	}
	c.changed, err = strconv.ParseUint(after.ResourceVersion, 10, 64)
	return err
}

// ask has the Deployment come to want it.
func (c *race) ask(ctx context.Context, r *rig) error {
	kind, patch := types.JSONPatchType,
		`[{"op":"add","path":"/spec/template/spec/containers/0/envFrom","value":[{"secretRef":{"name":"`+c.secret+`"}}]}]`
	if c.opts {
		kind, patch = types.MergePatchType, `{"metadata":{"annotations":{"keyturn.dev/roll-on":"auto"}}}`
	}
	after, err := r.client.AppsV1().Deployments(r.namespace).Patch(ctx, c.deployment, kind, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patching the deployment: %w", err)
	}
	c.asked, err = strconv.ParseUint(after.ResourceVersion, 10, 64)
	return err
}

func TestAWorkloadThatComesToWantASourceWhileItChangesIsNotMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	races := make([]race, 60)
	for i := range races {
		c := &races[i]
		*c = race{secret: ownSecret(i), deployment: "app-" + strconv.Itoa(i), opts: i%2 == 0}
		r.secret(c.secret, map[string]string{"password": "before"})
		rollOn := map[string]string{"keyturn.dev/roll-on": "auto"}
		if c.opts {
			rollOn = map[string]string{"keyturn.dev/roll-on": "none"}
		}
		deployment := programs.NewDeployment(r.namespace, c.deployment, 0, rollOn)
		if c.opts {
			programs.ReadSecret(&deployment.Spec.Template, c.secret)
		}
		if _, err := r.client.AppsV1().Deployments(r.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	r.quiet()
	var running sync.WaitGroup
	for i := range races {
		for _, write := range []func(context.Context, *rig) error{races[i].change, races[i].ask} {
			running.Go(func() {
				if err := write(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
	}
	running.Wait()
	later := 0
	for _, c := range races {
		if c.changed > c.asked {
			later++
		}
		r.eventually(fmt.Sprintf("%s has the change at %d of what it asked for at %d", c.deployment, c.changed, c.asked), func(context.Context) bool {
			deployment := r.deployment(c.deployment)
			rolled := deployment.Spec.Template.Annotations["keyturn.dev/revision"] != ""
			return strings.Contains(deployment.Annotations[recordAnnotation], fmt.Sprintf("@%d/", c.changed)) && (rolled || c.changed < c.asked)
		})
	}
	t.Logf("%d of %d changes came after the write", later, len(races))
}
