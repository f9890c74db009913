package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
)

// namespace is the namespace of the sources and the workloads.
const namespace = "soak"

// keys are the data keys of each source.
var keys = []string{"a", "b", "c", "d"}

// source is a Secret or a ConfigMap.
type source struct{ kind, name string }

// String returns the source's name in a record.
func (s source) String() string { return s.kind + "/" + s.name }

// member is a workload, with its number of pods.
type member struct {
	kind, name string
	replicas   int32
	sources    []source
	// keys has the keys that it reads of each of its sources. An empty list means all of them.
	keys map[source][]string
}

// reader returns the workload in the form for the verdict.
func (m member) reader() reader {
	r := reader{name: m.kind + "/" + m.name, reads: make(map[string][]string)}
	for _, s := range m.sources {
		r.reads[s.String()] = m.keys[s]
	}
	return r
}

// fleet has everything in the namespace.
type fleet struct {
	sources []source
	members []member
}

// newFleet generates a fleet with the given number of workloads, eight of ten of which are Deployments. There is a source for every four
// workloads; each workload reads one to three sources, either the whole source or one or two keys.
func newFleet(random *rand.Rand, workloads int) fleet {
	var f fleet
	for i := range max(4, workloads/4) {
		kind := "secret"
		if i%2 == 1 {
			kind = "configmap"
		}
		f.sources = append(f.sources, source{kind: kind, name: "source-" + strconv.Itoa(i)})
	}
	others := map[int]string{3: "statefulset", 6: "daemonset"}
	for i := range workloads {
		m := member{
			kind: cmp.Or(others[i%10], "deployment"), name: "app-" + strconv.Itoa(i),
			replicas: 1 + int32(random.IntN(2)), keys: make(map[source][]string),
		}
		for _, n := range random.Perm(len(f.sources))[:1+random.IntN(3)] {
			s := f.sources[n]
			m.sources = append(m.sources, s)
			if random.IntN(5) < 2 {
				continue
			}
			for _, k := range random.Perm(len(keys))[:1+random.IntN(2)] {
				m.keys[s] = append(m.keys[s], keys[k])
			}
		}
		f.members = append(f.members, m)
	}
	return f
}

func (f fleet) readers() []reader {
	var readers []reader
	for _, m := range f.members {
		readers = append(readers, m.reader())
	}
	return readers
}

// create creates the namespace with the fleet.
func (f fleet) create(ctx context.Context, client kubernetes.Interface) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the namespace: %w", err)
	}
	data := make(map[string]string)
	for _, key := range keys {
		data[key] = "initial"
	}
	for _, s := range f.sources {
		set := programs.SetSecret
		if s.kind == "configmap" {
			set = programs.SetConfigMap
		}
		if err := set(ctx, client, namespace, s.name, data); err != nil {
			return err
		}
	}
	for _, m := range f.members {
		if err := m.create(ctx, client); err != nil {
			return fmt.Errorf("making %s %s: %w", m.kind, m.name, err)
		}
	}
	return nil
}

func (m member) create(ctx context.Context, client kubernetes.Interface) error {
	labels := map[string]string{"app": m.name}
	meta := metav1.ObjectMeta{Name: m.name, Annotations: map[string]string{"keyturn.dev/roll-on": "auto"}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	var err error
	switch m.kind {
	case "statefulset":
		_, err = client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &m.replicas, Selector: selector, Template: m.template(labels), ServiceName: m.name, RevisionHistoryLimit: new(int32(2)),
		}}, metav1.CreateOptions{})
	case "daemonset":
		_, err = client.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: selector, Template: m.template(labels), RevisionHistoryLimit: new(int32(2)),
		}}, metav1.CreateOptions{})
	default:
		_, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &m.replicas, Selector: selector, Template: m.template(labels), RevisionHistoryLimit: new(int32(2)),
		}}, metav1.CreateOptions{})
	}
	return err
}

func (m member) template(labels map[string]string) corev1.PodTemplateSpec {
	template := programs.PodTemplate(labels)
	container := &template.Spec.Containers[0]
	for _, s := range m.sources {
		read, readKey := programs.ReadSecret, programs.ReadSecretKey
		if s.kind == "configmap" {
			read, readKey = programs.ReadConfigMap, programs.ReadConfigMapKey
		}
		if m.keys[s] == nil {
			read(&template, s.name)
		}
		for _, key := range m.keys[s] {
			readKey(&template, s.name, key)
			// The same key of two sources has two names.
			container.Env[len(container.Env)-1].Name = s.name + "." + key
		}
	}
	return template
}
