package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

// jobSyncs is the number of Jobs, and of CronJobs, that are worked on at a time; upstream's default.
const jobSyncs = 5

type runner interface {
	Run(ctx context.Context, workers int)
}

// worked returns the loop of a controller with a number of workers.
func worked(c runner, workers int) loop {
	return func(ctx context.Context) { c.Run(ctx, workers) }
}

func deployments(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	apps, core := m.informers.Apps().V1(), m.informers.Core().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	return worked(c, m.options.deployments), err
}

func replicaSets(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	apps, core := m.informers.Apps().V1(), m.informers.Core().V1()
	c := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas)
	return worked(c, m.options.replicaSets), nil
}

func statefulSets(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	apps, core := m.informers.Apps().V1(), m.informers.Core().V1()
	c := statefulset.NewStatefulSetController(
		ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client)
	return worked(c, m.options.statefulSets), nil
}

func daemonSets(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	apps, core := m.informers.Apps().V1(), m.informers.Core().V1()
	failedPods := flowcontrol.NewBackOff(time.Second, 15*time.Minute)
	c, err := daemon.NewDaemonSetsController(
		ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), client, failedPods)
	return worked(c, m.options.daemonSets), err
}

func jobs(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	// The last two are for a feature that is off.
	c, err := job.NewController(ctx, client, m.informers.Core().V1().Pods(), m.informers.Batch().V1().Jobs(), nil, nil)
	return worked(c, jobSyncs), err
}

func cronJobs(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	batch := m.informers.Batch().V1()
	c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	return worked(c, jobSyncs), err
}

// disruptionBudgets writes the status of PodDisruptionBudgets, which Argo CD and Flux read to see how an installation is.
func disruptionBudgets(ctx context.Context, m *manager, client kubernetes.Interface) (loop, error) {
	config, err := m.accounts.Config("disruption-controller")
	if err != nil {
		return nil, fmt.Errorf("configure the client of scales: %w", err)
	}
	kinds := scale.NewDiscoveryScaleKindResolver(client.Discovery())
	scales, err := scale.NewForConfig(config, m.mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, fmt.Errorf("make the client of scales: %w", err)
	}
	apps, core := m.informers.Apps().V1(), m.informers.Core().V1()
	c := disruption.NewDisruptionController(
		ctx, core.Pods(), m.informers.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(), apps.ReplicaSets(),
		apps.Deployments(), apps.StatefulSets(), client, m.mapper, scales, client.Discovery())
	return c.Run, nil
}
