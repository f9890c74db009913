package reloader

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/program"
)

// The values of --reload-strategy.
const (
	strategyEnvVars     = "env-vars"
	strategyAnnotations = "annotations"
)

// levels maps Reloader's log levels to ours.
var levels = map[string]string{
	"trace": "debug", "debug": "debug", "info": "info", "warn": "warn", "warning": "warn", "error": "error", "fatal": "error", "panic": "error",
}

// Translate returns the program that does what the flags and the environment say. The error has a line for each setting that is invalid or
// not supported.
func Translate(f *Flags, env Environment, version string) (*program.Reloader, error) {
	var p problems
	r := program.NewReloader(version)
	noteArguments(r, f.Arguments)
	if f.EnableHA {
		p.setReplica(r, f, env)
	}
	p.setScope(r, f, env)
	p.setWorkloads(r, f)
	p.setAnnotations(r, f)
	p.setNews(r, f)
	p.setOperation(r, f)
	if err := p.err(); err != nil {
		return nil, err
	}
	return r, nil
}

// setReplica makes the program one of several replicas. Each of them watches, and one of them rolls.
func (p *problems) setReplica(r *program.Reloader, f *Flags, env Environment) {
	actuate := &r.Actuator.Actuate
	actuate.LeaderElect, actuate.LeaseNamespace, actuate.LeaseName = true, env.PodNamespace, leaseName(env.Deployment)
	if len(validation.IsDNS1123Subdomain(actuate.LeaseName)) > 0 {
		p.refuse("RELOADER_DEPLOYMENT_NAME", env.Deployment, "the name of this pod's Deployment with --enable-ha")
	}
	for _, variable := range [][2]string{{"POD_NAME", env.PodName}, {"POD_NAMESPACE", env.PodNamespace}} {
		if variable[1] == "" {
			p.refuse(variable[0], "", "the one of this pod with --enable-ha")
		}
	}
	if f.WebhookURL != "" {
		p.refuse("--enable-ha", "true", "false with --webhook-url, which every replica would call")
	}
}

// leaseName returns the name of the Lease of a Deployment's replicas. Reloader has one Lease for all of a namespace, so if there are two
// releases, each with its own sources, only one of them rolls. The name is never that of an actuator's Lease.
func leaseName(deployment string) string {
	if deployment == "" {
		return "keyturn-reloader"
	}
	return "keyturn-reloader-" + deployment
}

// setScope sets what is watched.
func (p *problems) setScope(r *program.Reloader, f *Flags, env Environment) {
	sources := &r.Watcher.Sources
	p.checkNames("--namespaces", f.Namespaces)
	namespaces := f.Namespaces
	if len(namespaces) == 0 && env.Namespace != "" {
		namespaces = []string{env.Namespace}
		p.checkNames("KUBERNETES_NAMESPACE", namespaces)
	}
	noteColons(r, "--namespace-selector", f.NamespaceSelector)
	noteColons(r, "--resource-label-selector", f.ResourceLabelSelector)
	selector, err := parseSelector(f.NamespaceSelector)
	if err != nil {
		p.wrong("--namespace-selector", err)
	}
	if len(namespaces) == 0 {
		sources.NamespaceSelector = selector
		ignoreNamespaces(r, f.NamespacesToIgnore)
	} else {
		namespaces = unique(namespaces)
		sources.Namespaces, r.Actuator.Actuate.Namespaces = namespaces, namespaces
		if len(f.NamespacesToIgnore) > 0 {
			note(r, "--namespaces-to-ignore", "none, because the namespaces are named")
		}
		if selector != "" {
			note(r, "--namespace-selector", "none, because the namespaces are named")
		}
	}
	if sources.Selector, err = parseSelector(f.ResourceLabelSelector); err != nil {
		p.wrong("--resource-label-selector", err)
	}
	p.setKinds(r, f.ResourcesToIgnore, f.EnableCSIIntegration)
}

// ignoreNamespaces sets the namespaces to ignore. As in Reloader, an invalid name has no effect.
func ignoreNamespaces(r *program.Reloader, namespaces []string) {
	var ignored []string
	for _, namespace := range unique(namespaces) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			note(r, "--namespaces-to-ignore", fmt.Sprintf("none for %q, which is not the name of a namespace", namespace))
			continue
		}
		ignored = append(ignored, namespace)
	}
	r.Watcher.Sources.IgnoreNamespaces, r.Actuator.Actuate.IgnoreNamespaces = ignored, ignored
}

// unique returns the names without duplicates.
func unique(names []string) []string {
	var left []string
	for _, name := range names {
		if !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	return left
}

func (p *problems) checkNames(setting string, namespaces []string) {
	for _, namespace := range namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			p.refuse(setting, namespace, "the name of a namespace")
		}
	}
}

// setKinds sets the kinds of sources, without the ignored one. If mounted is true, it adds what the Secrets Store CSI driver mounts.
func (p *problems) setKinds(r *program.Reloader, ignored []string, mounted bool) {
	if mounted {
		r.Watcher.Sources.Kinds = append(slices.Clone(r.Watcher.Sources.Kinds), string(events.KindSecretProviderClass))
	}
	kinds := map[string]events.Kind{"configmaps": events.KindConfigMap, "secrets": events.KindSecret}
	if len(ignored) > 1 {
		p.refuse("--resources-to-ignore", strings.Join(ignored, ","), "configmaps or secrets, not both")
		return
	}
	for _, text := range ignored {
		kind, known := kinds[strings.ToLower(text)]
		if !known {
			p.refuse("--resources-to-ignore", text, "configmaps or secrets")
		}
		r.Watcher.Sources.Kinds = slices.DeleteFunc(r.Watcher.Sources.Kinds, func(name string) bool { return name == string(kind) })
	}
}

// setWorkloads sets what is rolled, and how.
func (p *problems) setWorkloads(r *program.Reloader, f *Flags) {
	actuate := &r.Actuator.Actuate
	actuate.Reloader, actuate.ReloaderMetrics, actuate.RollAll = true, true, f.AutoReloadAll
	if f.Settle < 0 {
		p.refuse("--settle", f.Settle.String(), "0 or more")
	}
	if f.MaxRollsPerHour < 0 {
		p.refuse("--max-rolls-per-hour", strconv.Itoa(f.MaxRollsPerHour), "0 or more")
	}
	actuate.Settle, actuate.SettleMax, actuate.MaxRollsPerHour = f.Settle, max(f.Settle, actuate.SettleMax), f.MaxRollsPerHour
	actuate.ArgoRollouts = isOn(r, "--is-Argo-Rollouts", f.IsArgoRollouts)
	actuate.RollOnCreate, actuate.RollOnDelete = plan.CreateNever, isOn(r, "--reload-on-delete", f.ReloadOnDelete)
	if isOn(r, "--reload-on-create", f.ReloadOnCreate) {
		actuate.RollOnCreate = plan.CreateAlways
	}
	actuate.StartCronJobs, actuate.RecreateJobs = true, true
	for _, text := range f.IgnoredWorkloadTypes {
		switch text {
		case "jobs":
			actuate.RecreateJobs = false
		case "cronjobs":
			actuate.StartCronJobs = false
			actuate.IgnoreWorkloadKinds = append(actuate.IgnoreWorkloadKinds, text)
		default:
			p.refuse("--ignored-workload-types", text, "jobs, cronjobs or both")
		}
	}
	switch f.ReloadStrategy {
	case strategyAnnotations, strategyEnvVars:
		actuate.ReloaderStrategy = f.ReloadStrategy // it has the same values
	default:
		p.refuse("--reload-strategy", f.ReloadStrategy, strategyEnvVars+" or "+strategyAnnotations)
	}
}

// setAnnotations sets the keys of annotations that are not the default.
func (p *problems) setAnnotations(r *program.Reloader, f *Flags) {
	keys := map[string]string{}
	for _, a := range annotationFlags {
		if key := *f.Annotations[a.name]; key != a.key {
			keys[a.name] = key
		}
	}
	if _, err := annotations.Parse(keys); err != nil {
		// Here, each name is a flag.
		for line := range strings.SplitSeq(err.Error(), "\n") {
			p.add(errors.New("--" + strings.TrimPrefix(line, "--reloader-annotations: ")))
		}
	}
	r.Watcher.Sources.ReloaderAnnotations, r.Actuator.Actuate.ReloaderAnnotations = keys, keys
}

// setNews sets who is notified of rolls, and which webhook is called instead of rolling.
func (p *problems) setNews(r *program.Reloader, f *Flags) {
	r.Actuator.Notify.ConfigFile, r.Actuator.Call.URL = f.NotifyConfig, f.WebhookURL
	p.add(r.Actuator.Call.Validate())
	if f.WebhookURL == "" {
		return
	}
	for _, flag := range [][2]string{{"--reload-on-create", f.ReloadOnCreate}, {"--reload-on-delete", f.ReloadOnDelete}} {
		if flag[1] == "true" {
			p.refuse(flag[0], flag[1], "false with --webhook-url, which is called when content changes")
		}
	}
}

// setOperation sets how the program runs.
func (p *problems) setOperation(r *program.Reloader, f *Flags) {
	setLog(r, f)
	if f.EnablePprof {
		if _, _, err := net.SplitHostPort(f.PprofAddr); err != nil {
			p.refuse("--pprof-addr", f.PprofAddr, "host:port or :port")
		}
		r.PprofAddr = f.PprofAddr
	}
	if err := events.ValidateCluster(f.Cluster); err != nil {
		p.wrong("--cluster", err)
	}
	r.Process.Cluster, r.Process.MetricsAddr, r.StateDir = f.Cluster, f.MetricsAddr, f.StateDir
	r.Watcher.Process.Kube.Kubeconfig, r.Actuator.Process.Kube.Kubeconfig = f.Kubeconfig, f.Kubeconfig
	r.Watcher.Sources.KeyFile = f.FingerprintKeyFile
}

// setLog sets how the program logs. As in Reloader, the default replaces an unknown value.
func setLog(r *program.Reloader, f *Flags) {
	level, known := levels[strings.ToLower(f.LogLevel)]
	if !known {
		level = "info"
		note(r, "--log-level", fmt.Sprintf("info, because %q is not trace, debug, info, warning, error, fatal or panic", f.LogLevel))
	}
	r.Process.Log.Level, r.Process.Log.Format = level, "text"
	switch f.LogFormat {
	case "":
	case "json":
		r.Process.Log.Format = f.LogFormat
	default:
		note(r, "--log-format", fmt.Sprintf("text, because %q is not json", f.LogFormat))
	}
}
