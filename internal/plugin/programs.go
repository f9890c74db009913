package plugin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/actuate"
)

const (
	programsSelector = "app.kubernetes.io/part-of=keyturn"
	leaseName        = "keyturn-actuator"
)

type program struct {
	Name string `json:"name"`
	// Ready is the number of ready pods, and Replicas the desired number.
	Ready    int32 `json:"ready"`
	Replicas int32 `json:"replicas"`
	// Version is the tag of the image, or its digest if it has no tag.
	Version string `json:"version"`
}

// programs returns the programs of the installation, by name.
func (i *installation) programs(ctx context.Context) ([]program, error) {
	options := metav1.ListOptions{LabelSelector: programsSelector}
	sets, err := i.client.AppsV1().StatefulSets(i.namespace).List(ctx, options)
	if err != nil {
		return nil, right{"list", "statefulsets.apps", "", i.namespace}.explain(err)
	}
	deployments, err := i.client.AppsV1().Deployments(i.namespace).List(ctx, options)
	if err != nil {
		return nil, right{"list", "deployments.apps", "", i.namespace}.explain(err)
	}
	var all []program
	for _, set := range sets.Items {
		all = append(all, newProgram(set.Name, set.Status.ReadyReplicas, set.Spec.Replicas, set.Spec.Template.Spec))
	}
	for _, deployment := range deployments.Items {
		all = append(all, newProgram(deployment.Name, deployment.Status.ReadyReplicas, deployment.Spec.Replicas, deployment.Spec.Template.Spec))
	}
	slices.SortFunc(all, func(a, b program) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func newProgram(name string, ready int32, replicas *int32, pod corev1.PodSpec) program {
	p := program{Name: name, Ready: ready, Replicas: 1}
	if replicas != nil {
		p.Replicas = *replicas
	}
	// Injected containers may come before the program's own.
	at := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == strings.TrimPrefix(name, "keyturn-") })
	if at = max(at, 0); at < len(pod.Containers) {
		p.Version = versionOf(pod.Containers[at].Image)
	}
	return p
}

func versionOf(image string) string {
	named, digest, _ := strings.Cut(image, "@")
	if colon := strings.LastIndex(named, ":"); colon > strings.LastIndex(named, "/") {
		return named[colon+1:]
	}
	return digest
}

type leader struct {
	Pod     string    `json:"pod"`
	Renewed time.Time `json:"renewed"`
	// Lost says that the actuator has not renewed the Lease in time.
	Lost bool `json:"lost,omitempty"`
}

// elects reports whether the actuators elect a leader. Actuators that post to a webhook do not: the chart has its address in a Secret, together with
// KEYTURN_RELOADER, which is not in a Secret otherwise.
func (i *installation) elects() bool {
	elect, err := strconv.ParseBool(i.settings["KEYTURN_LEADER_ELECT"])
	var options actuate.Options
	_ = options.Reloader.Set(i.settings["KEYTURN_RELOADER"]) // Set returns no error for it.
	inSecret := slices.ContainsFunc(i.container.Env, func(v corev1.EnvVar) bool {
		return v.Name == "KEYTURN_RELOADER" && v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil
	})
	return (elect || err != nil) && options.Reloader.WebhookURL == "" && !inSecret
}

// isDry reports whether the actuators decide and report, but patch nothing.
func (i *installation) isDry() bool {
	dry, err := strconv.ParseBool(i.settings["KEYTURN_DRY_RUN"])
	return dry && err == nil
}

// leaseName returns the name of the Lease. A dry run has its own.
func (i *installation) leaseName() string {
	if i.isDry() {
		return leaseName + "-dry-run"
	}
	return leaseName
}

// leader returns the holder of the Lease. It returns nil if there is none, or if there is no election.
func (i *installation) leader(ctx context.Context, now time.Time) (*leader, error) {
	if !i.elects() {
		return nil, nil //nolint:nilnil // All actuators act. A Lease may be left from earlier settings.
	}
	name := i.leaseName()
	lease, err := i.client.CoordinationV1().Leases(i.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // No actuator leads, and nothing is wrong.
	}
	if err != nil {
		return nil, right{"get", "leases.coordination.k8s.io", name, i.namespace}.explain(err)
	}
	holder, renewed := lease.Spec.HolderIdentity, lease.Spec.RenewTime
	if holder == nil || *holder == "" || renewed == nil || lease.Spec.LeaseDurationSeconds == nil {
		return nil, nil //nolint:nilnil // The last leader has given it up.
	}
	lost := now.Sub(renewed.Time) > time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second
	return &leader{Pod: *holder, Renewed: renewed.Time, Lost: lost}, nil
}
