package actuate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// cluster is a namespace with Deployments, an API server that takes patches of them, and a stream of changes.
type cluster struct {
	*testing.T
	client *fake.Clientset
	// js and bus are nil without a stream.
	js  jetstream.JetStream
	bus *events.Bus

	mu      sync.Mutex
	version int
	// patched are the Deployments whose pods a patch has replaced, and recorded those that only got a record.
	patched, recorded []string
	refuse            error
	// published is the sequence of the last change.
	published uint64
	log       bytes.Buffer
}

// newCluster makes a cluster in which all pods of the Deployments are ready.
func newCluster(t *testing.T, deployments ...*appsv1.Deployment) *cluster {
	t.Helper()
	c := newStreamless(t, deployments...)
	nc, js := natstest.Streams(t)
	bus, err := events.Open(t.Context(), nc, "demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.js, c.bus = js, bus
	return c
}

// newStreamless makes such a cluster without a stream, which needs no server. Nothing is to be published there, and no actuator to be started.
func newStreamless(t *testing.T, deployments ...*appsv1.Deployment) *cluster {
	t.Helper()
	c := &cluster{T: t, client: fake.NewClientset(), version: 10}
	c.client.PrependReactor("patch", "deployments", c.patch)
	c.client.PrependReactor("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	for _, deployment := range deployments {
		c.complete(deployment)
		deployment.ResourceVersion = c.next()
		if _, err := c.client.AppsV1().Deployments("shop").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return strconv.Itoa(c.version)
}

// patch answers a patch as an API server does.
func (c *cluster) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	refuse := c.refuse
	c.mu.Unlock()
	patch, ok := action.(k8stesting.PatchAction)
	if !ok || refuse != nil {
		return true, nil, refuse
	}
	found, err := c.client.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	after, err := patched(found, action)
	if err != nil {
		return true, nil, err
	}
	deployment, ok := after.(*appsv1.Deployment)
	if !ok {
		return true, nil, fmt.Errorf("it is a %T", found)
	}
	deployment.ResourceVersion = c.next()
	c.mu.Lock()
	if revisionIn(action) != "" {
		deployment.Generation++
		c.patched = append(c.patched, deployment.Name)
	} else {
		c.recorded = append(c.recorded, deployment.Name)
	}
	c.mu.Unlock()
	return true, deployment, c.client.Tracker().Update(patch.GetResource(), deployment, patch.GetNamespace())
}

// complete makes all pods be of the current template, and ready.
func (c *cluster) complete(deployment *appsv1.Deployment) {
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
}

// set changes a Deployment as its controller or a person does.
func (c *cluster) set(name string, change func(*appsv1.Deployment)) {
	c.Helper()
	deployment := c.get(name)
	change(deployment)
	deployment.ResourceVersion = c.next()
	if _, err := c.client.AppsV1().Deployments("shop").Update(c.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) get(name string) *appsv1.Deployment {
	c.Helper()
	deployment, err := c.client.AppsV1().Deployments("shop").Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return deployment
}

// Write appends to the log of the actuator.
func (c *cluster) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(line)
}

func (c *cluster) logged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// records lists the Deployments that got a record without being rolled.
func (c *cluster) records() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.recorded)
}

// patches lists the Deployments that were rolled.
func (c *cluster) patches() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.patched)
}

func (c *cluster) options() Options {
	options := testOptions()
	options.Client, options.Settle, options.LeaderElect, options.Now = c.client, 0, false, time.Now
	options.StoreAccess = "testdata/every-store.yaml"
	options.Logger = slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return options
}

// start runs an actuator until the returned function is called.
func (c *cluster) start(options Options) (*Actuator, func()) {
	c.Helper()
	a, err := New(options)
	if err != nil {
		c.Fatal(err)
	}
	stop := testkit.Run(c.T, "actuator", func(ctx context.Context) error { return a.Run(ctx, c.bus) })
	c.eventually("the actuator is ready", func() bool { return a.Ready() == nil })
	return a, stop
}

func (c *cluster) eventually(what string, holds func() bool) {
	c.Helper()
	testkit.Eventually(c.T, what, holds, c.logged)
}

// publish publishes a change of db and returns its sequence. Expected is the sequence of the event before.
func (c *cluster) publish(expected uint64, mutate func(*events.Change)) uint64 {
	c.Helper()
	c.published = mustPublish(c.T, c.bus, c.change(mutate), expected)
	return c.published
}

// change makes a change of db.
func (c *cluster) change(mutate func(*events.Change)) events.Change {
	change := changeOf(mutate)
	change.ResourceVersion = c.next()
	change.ChangedAt, change.Time, change.WrittenAt = change.ResourceVersion, time.Now(), time.Now()
	change.Keys["password"] = events.Key{Fingerprint: change.Keys["password"].Fingerprint, ChangedAt: change.ResourceVersion}
	return change
}

// last returns the last outcome of a Deployment as text.
func (c *cluster) last(name string) string {
	stored, err := c.bus.Last(c.Context(), events.OutcomeSubject("demo", events.Workload{Kind: "deployment", Namespace: "shop", Name: name}))
	if err != nil {
		return err.Error()
	}
	outcome, err := stored.Outcome()
	if err != nil {
		return err.Error()
	}
	return string(outcome.Verb) + " " + outcome.Reason
}

func (c *cluster) wantLast(name, want string) {
	c.Helper()
	c.eventually(name+" is "+want, func() bool { return c.last(name) == want })
}

// deploymentOf returns a Deployment that reads all of a Secret.
func deploymentOf(name, secret string, annotations map[string]string) *appsv1.Deployment {
	deployment := webDeployment("1", maps.Clone(annotations))
	deployment.Name, deployment.UID = name, types.UID("uid-"+name)
	deployment.Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef.Name = secret
	return deployment
}
