package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// oldest is the oldest supported version of Kubernetes, which is the first with admission policies.
const oldest = "1.30.0"

func (p *Plugin) checkServer() finding {
	info, err := p.access.typed.Discovery().ServerVersion()
	if err != nil {
		return finding{failure, "Kubernetes", err.Error(), "see your kubeconfig"}
	}
	found, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return finding{warning, "Kubernetes", fmt.Sprintf("%q is no version that can be compared", info.GitVersion), "want " + oldest + " or later"}
	}
	if !found.AtLeast(version.MustParseGeneric(oldest)) {
		return finding{warning, "Kubernetes", info.GitVersion, "want " + oldest + " or later: before, no policy confines what Keyturn writes"}
	}
	return finding{good, "Kubernetes", info.GitVersion, ""}
}

func (p *Plugin) checkPolicyKind(ctx context.Context) finding {
	const about = "admission policies"
	_, err := p.access.typed.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return finding{good, about, "the API server has them", ""}
	case apierrors.IsNotFound(err):
		return finding{warning, about, "the API server has none", "install without: see docs/explanation/security.md"}
	}
	return finding{failure, about, err.Error(), "the API server does not answer"}
}

// checkPolicies checks the admission policies that confine the accounts of the installation.
func (p *Plugin) checkPolicies(ctx context.Context) []finding {
	const about, fix = "admission policies", "apply deploy/admission: see docs/explanation/security.md"
	p.settings = actuate.DefaultOptions() // Another attempt reads them again.
	unread := p.readSettings(ctx)
	kinds, unknown := p.settings.Kinds()
	i := p.installed
	confinement := kube.Confinement{Namespace: i.namespace, Account: i.userOf(i.pods.ServiceAccountName), Resources: kinds.Resources()}
	policies, err := confinement.Policies(ctx, p.access.typed)
	isThere := func(policy kube.PolicyState) bool { return policy.Problem != kube.PolicyMissing }
	switch {
	case apierrors.IsNotFound(err), err == nil && !slices.ContainsFunc(policies, isThere):
		return []finding{{warning, about, "none confines what the actuator may write", fix}}
	case err != nil:
		return []finding{{warning, about, "not checked: " + err.Error(), "list validatingadmissionpolicies and validatingadmissionpolicybindings"}}
	}
	var all []finding
	for _, policy := range policies {
		f := finding{good, "admission policy " + policy.Name, "bound", ""}
		if policy.Problem != "" {
			f.result, f.text, f.fix = failure, policy.Problem, fix
		}
		all = append(all, f)
	}
	if err := errors.Join(unread, unknown); err != nil {
		all = append(all, finding{warning, about, "those of custom resources are not checked: " + err.Error(), ""})
	}
	return all
}

func (i *installation) checkPrograms(programs []program) finding {
	var versions, down []string
	for _, p := range programs {
		if p.Ready < p.Replicas {
			down = append(down, fmt.Sprintf("%s (%d/%d)", p.Name, p.Ready, p.Replicas))
		}
		versions = append(versions, p.Name+" "+p.Version)
	}
	if len(down) > 0 {
		fix := "see kubectl -n " + i.namespace + " describe pods, and docs/operate/troubleshooting.md"
		return finding{failure, "programs", "not ready: " + strings.Join(down, ", "), fix}
	}
	return finding{good, "programs", strings.Join(versions, ", "), ""}
}

// checkKeys checks whether the Secrets that the pods need exist. It does not read their content.
func (p *Plugin) checkKeys(ctx context.Context) finding {
	i := p.installed
	needed := []string{"keyturn-fingerprint-key", readerSecret}
	if !i.single {
		watcher, err := i.watcher(ctx)
		if err != nil {
			return finding{warning, "keys", "not checked: " + err.Error(), ""}
		}
		needed = append(secretsOf(i.pods), secretsOf(watcher.pods)...)
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	secrets := p.access.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(i.namespace)
	var lost []string
	for _, name := range needed {
		_, err := secrets.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			lost = append(lost, name)
		case err != nil:
			return finding{warning, "keys", "not checked: " + right{"get", "secrets", name, i.namespace}.explain(err).Error(), ""}
		}
	}
	without := "no secret " + strings.Join(lost, ", ")
	switch {
	case len(lost) > 0 && i.single:
		return finding{warning, "keys", without, "the program may make none, and keeps its keys beside the streams"}
	case len(lost) > 0:
		return finding{failure, "keys", without, "run the job keyturn-keys again: see docs/operate/troubleshooting.md"}
	}
	return finding{good, "keys", fmt.Sprintf("%d secrets", len(needed)), ""}
}

// secretsOf returns the Secrets without which pods do not start.
func secretsOf(pods *corev1.PodSpec) []string {
	var found []string
	for _, ref := range workload.References(&corev1.PodTemplateSpec{Spec: *pods}) {
		if ref.Kind == events.KindSecret && !ref.Optional && !ref.ByPull {
			found = append(found, ref.Name)
		}
	}
	return found
}

func (i *installation) checkLease(ctx context.Context) finding {
	leads, err := i.leader(ctx, time.Now())
	switch {
	case err != nil:
		return finding{warning, "Lease", "not checked: " + err.Error(), ""}
	case !i.elects():
		return finding{good, "Lease", "there is no election", ""}
	case leads == nil || leads.Lost:
		return finding{failure, "Lease", "no actuator leads", "see the log of the " + i.program() + ", and docs/operate/troubleshooting.md"}
	}
	return finding{good, "Lease", leads.Pod + " leads", ""}
}

// checkStreams checks whether NATS can be reached and has the streams.
func (p *Plugin) checkStreams(ctx context.Context) []finding {
	const fix = "see docs/operate/troubleshooting.md"
	b, err := p.openBus(ctx)
	if err != nil {
		return []finding{{failure, "NATS", err.Error(), fix}}
	}
	reached := finding{good, "NATS", "reached, as cluster " + p.cluster, ""}
	usage, err := b.Usage(ctx)
	if err != nil {
		return []finding{reached, {failure, "streams", err.Error(), fix}}
	}
	var held []string
	letters := uint64(0)
	for _, stream := range usage {
		held = append(held, fmt.Sprintf("%s %s", stream.Stream, mebibytes(stream.Bytes)))
		if stream.Stream == "DEADLETTERS" {
			letters = stream.Messages
		}
	}
	found := finding{good, "streams", strings.Join(held, ", "), ""}
	if letters > 0 {
		found.result, found.fix = warning, fmt.Sprintf("%d dead letters: see kubectl keyturn dead-letters", letters)
	}
	return []finding{reached, found}
}

// checkMonitors checks whether Prometheus Operator, if installed, scrapes the programs.
func (p *Plugin) checkMonitors(ctx context.Context) finding {
	const about = "PodMonitors"
	monitors := schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "podmonitors"}
	list, err := p.access.metadata.Resource(monitors).Namespace(p.installed.namespace).List(ctx, metav1.ListOptions{LabelSelector: programsSelector})
	switch {
	case apierrors.IsNotFound(err):
		return finding{good, about, "there is no Prometheus Operator", ""}
	case err != nil:
		err = right{"list", "podmonitors.monitoring.coreos.com", "", p.installed.namespace}.explain(err)
		return finding{warning, about, "not checked: " + err.Error(), ""}
	case len(list.Items) == 0:
		return finding{warning, about, "none, so no alert fires", "add deploy/monitoring, or monitoring.enabled of the chart"}
	}
	return finding{good, about, fmt.Sprintf("%d", len(list.Items)), ""}
}
