package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/programs"
)

const annotationWave = "keyturn.dev/wave"

// fill creates the namespace, a Secret of each contender, and the Deployments, and waits until all pods are ready.
func (f *fan) fill(ctx context.Context) error {
	f.say("creating %d Deployments with a pod each, which read one Secret", f.cluster.deployments)
	if err := f.makeNamespace(ctx); err != nil {
		return err
	}
	for _, contender := range []string{contenderFloor, contenderKeyturn} {
		if err := f.cluster.createSecret(ctx, fanOutNamespace, contender, sharedSecret); err != nil {
			return err
		}
	}
	for i := range f.cluster.deployments {
		f.keys = append(f.keys, fanOutNamespace+"/"+deploymentName(i))
	}
	ready, start := f.observer.expectRollouts(f.keys), time.Now()
	err := inParallel(ctx, f.cluster.deployments, func(ctx context.Context, i int) error {
		deployment := programs.NewDeployment(fanOutNamespace, deploymentName(i), 1, map[string]string{annotationOptIn: "auto"})
		// Rolls leave no ReplicaSets, so that each costs the control plane the same.
		deployment.Spec.RevisionHistoryLimit = new(int32(0))
		// Without a limit, most rollouts wait for the controllers and not for their pods.
		deployment.Spec.ProgressDeadlineSeconds = new(int32(3600))
		programs.ReadSecret(&deployment.Spec.Template, secretName(contenderKeyturn, sharedSecret))
		if _, err := f.cluster.client.AppsV1().Deployments(fanOutNamespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making deployment %s: %w", deployment.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	took, err := f.observer.until(ctx, ready, start)
	if err != nil {
		return fmt.Errorf("waiting for the pods: %w", err)
	}
	f.say("all pods are ready after %.1f s", took.Seconds())
	return nil
}

// makeNamespace creates the namespace, and waits for the service account that its pods need.
func (f *fan) makeNamespace(ctx context.Context) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fanOutNamespace}}
	if _, err := f.cluster.client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making namespace %s: %w", space.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := f.cluster.client.CoreV1().ServiceAccounts(fanOutNamespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the service account of namespace %s: %w", space.Name, err)
	}
	return nil
}

// waveOf returns the wave of Deployment i of n, as JSON. The waves are of equal size, as far as possible.
func waveOf(i, n int) string { return strconv.Quote(strconv.Itoa(i * fanOutWaves / n)) }

// noWave returns the value that removes the wave in a merge patch.
func noWave(int, int) string { return "null" }

// setWaves sets the wave of each Deployment.
func (f *fan) setWaves(ctx context.Context, wave func(i, n int) string) error {
	n := f.cluster.deployments
	return inParallel(ctx, n, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotationWave, wave(i, n))
		_, err := f.cluster.client.AppsV1().Deployments(fanOutNamespace).
			Patch(ctx, deploymentName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("setting the wave of deployment %s: %w", deploymentName(i), err)
		}
		return nil
	})
}
