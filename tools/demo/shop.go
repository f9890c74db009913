package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/programs"
)

// namespace is where all of the demo's workloads are.
const namespace = "shop"

// workers is how many Deployments share secret/license.
const workers = 20

// shop is what the demo changes, and the workloads that read it.
type shop struct {
	secrets, configMaps map[string]map[string]string
	deployments         []*appsv1.Deployment
	statefulSet         *appsv1.StatefulSet
	daemonSet           *appsv1.DaemonSet
	cronJob             *batchv1.CronJob
}

// optIn returns the annotation that rolls a workload for everything its pods read.
func optIn() map[string]string { return map[string]string{"keyturn.dev/roll-on": "auto"} }

func newShop() shop {
	s := shop{
		secrets: map[string]map[string]string{
			"db":      {"user": "shop", "password": rand.Text()},
			"api":     {"token": rand.Text()},
			"license": {"key": rand.Text()},
			"canary":  {"song": rand.Text()},
		},
		configMaps: map[string]map[string]string{
			"settings": {"greeting": "hello", "comment": "nobody reads this key"},
			"api":      {"timeout": "30s"},
		},
	}
	web := s.deploy("web", 3, optIn())
	programs.ReadSecret(web, "db")
	programs.ReadConfigMapKey(web, "settings", "greeting")
	programs.ReadConfigMapKey(s.deploy("banner", 2, optIn()), "settings", "greeting")
	api := s.deploy("api", 2, optIn())
	programs.ReadSecret(api, "api")
	programs.ReadConfigMap(api, "api")
	programs.ReadSecret(s.deploy("legacy", 1, nil), "db")
	programs.ReadSecret(s.deploy("canary", 1, optIn()), "canary")
	for i := range workers {
		programs.ReadSecret(s.deploy(fmt.Sprintf("worker-%02d", i+1), 1, optIn()), "license")
	}

	meta := func(name string) (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
		labels := map[string]string{"app": name}
		object := metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: optIn()}
		return object, &metav1.LabelSelector{MatchLabels: labels}, programs.PodTemplate(labels)
	}
	s.statefulSet, s.daemonSet, s.cronJob = &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &batchv1.CronJob{}

	queue, two := &s.statefulSet.Spec, int32(2)
	s.statefulSet.ObjectMeta, queue.Selector, queue.Template = meta("queue")
	queue.Replicas = &two
	programs.MountSecret(&queue.Template, "db")

	agent := &s.daemonSet.Spec
	s.daemonSet.ObjectMeta, agent.Selector, agent.Template = meta("agent")
	programs.ReadSecret(&agent.Template, "db")

	report := &s.cronJob.Spec.JobTemplate.Spec
	s.cronJob.ObjectMeta, _, report.Template = meta("report")
	s.cronJob.Spec.Schedule = "0 6 * * *"
	report.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	programs.ReadSecret(&report.Template, "db")
	return s
}

// deploy adds a Deployment and returns its pod template.
func (s *shop) deploy(name string, replicas int32, annotations map[string]string) *corev1.PodTemplateSpec {
	deployment := programs.NewDeployment(namespace, name, replicas, annotations)
	s.deployments = append(s.deployments, deployment)
	return &deployment.Spec.Template
}

// size returns the number of workloads.
func (s *shop) size() int { return len(s.deployments) + 3 }

// setShop sets the stage for [scenario].
func setShop(ctx context.Context, s *stage, out *report) error {
	if err := s.build(ctx, out); err != nil {
		return err
	}
	shop := newShop()
	if err := s.fill(ctx, shop); err != nil {
		return err
	}
	if err := s.open(ctx, shop.size(), func(ctx context.Context) error { return s.create(ctx, shop) }); err != nil {
		return err
	}
	out.did("namespace %s: %d workloads, all pods ready", namespace, shop.size())
	return s.run(ctx, out, programs.Options{
		Env: []string{"POD_NAME=keyturn-actuator-0"}, ActuatorArgs: []string{"--max-rollouts", strconv.Itoa(atOnce)},
	})
}

// fill writes the Secrets and ConfigMaps that the workloads of the shop read.
func (s *stage) fill(ctx context.Context, shop shop) error {
	for name, data := range shop.secrets {
		if err := programs.SetSecret(ctx, s.client, namespace, name, data); err != nil {
			return err
		}
	}
	for name, data := range shop.configMaps {
		if err := programs.SetConfigMap(ctx, s.client, namespace, name, data); err != nil {
			return err
		}
	}
	return nil
}

// open creates the workloads, size in number, and waits until their pods are ready.
func (s *stage) open(ctx context.Context, size int, create func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	var stopObserving func()
	var err error
	if s.workloads, stopObserving, err = observe(s.client); err != nil {
		return err
	}
	s.onStop(stopObserving)
	if err := create(ctx); err != nil {
		return fmt.Errorf("making the workloads: %w", err)
	}
	err = s.workloads.until(ctx, func(seen map[string]sight) bool {
		for _, workload := range seen {
			if workload.ready.IsZero() {
				return false
			}
		}
		return len(seen) == size
	})
	if err != nil {
		return fmt.Errorf("waiting for the pods: %w", err)
	}
	s.seen = s.workloads.all()
	return nil
}

func (s *stage) create(ctx context.Context, shop shop) error {
	options := metav1.CreateOptions{}
	if err := s.createAll(ctx, shop.deployments); err != nil {
		return err
	}
	if _, err := s.client.AppsV1().StatefulSets(namespace).Create(ctx, shop.statefulSet, options); err != nil {
		return err
	}
	if _, err := s.client.AppsV1().DaemonSets(namespace).Create(ctx, shop.daemonSet, options); err != nil {
		return err
	}
	_, err := s.client.BatchV1().CronJobs(namespace).Create(ctx, shop.cronJob, options)
	return err
}

// makeNamespace creates the namespace, and waits for what controllers create in it and pods need.
func (s *stage) makeNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making namespace %s: %w", namespace, err)
	}
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, account := s.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		_, roots := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return account == nil && roots == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for namespace %s: %w", namespace, err)
	}
	return nil
}
