package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/program"
	"github.com/keyturn/keyturn/internal/reloader"
)

// These are the values of the actuator's --jobs.
const (
	jobsStart    = "start"
	jobsRecreate = "recreate"
)

// levels maps Reloader's log levels to ours.
var levels = map[string]string{
	"trace": "debug", "debug": "debug", "info": "info", "warn": "warn", "warning": "warn", "error": "error", "fatal": "error", "panic": "error",
}

// translation translates the flags and environment of Stakater's Reloader 1.4 to the options of a process that runs the watcher and the actuator.
// Names, defaults and precedence are Reloader's. A setting that cannot have the same effect is refused by name, with an alternative.
type translation struct {
	*program.Reloader
	flags *flagValues
	env   environment
	// problems contains an error for each refused setting, and nil for some others.
	problems []error
}

// translate returns the program for the flags and the environment. It reads no file and opens no connection. The error has a line for each setting
// that is invalid or not supported.
func translate(f *flagValues, env environment, version string) (*program.Reloader, error) {
	t := &translation{Reloader: program.NewReloader(version), flags: f, env: env}
	// Reloader ignores arguments, such as the value after a boolean flag.
	for _, argument := range f.Arguments {
		t.note(fmt.Sprintf("argument %.100q", argument), "none, as in Reloader; a flag that is on or off takes its value as --flag=value")
	}
	if f.EnableHA {
		t.setReplica()
	}
	t.setScope()
	t.setWorkloads()
	t.setAnnotations()
	t.setNotifications()
	t.setLog()
	t.setOperation()
	if err := errors.Join(t.problems...); err != nil {
		return nil, err
	}
	return t.Reloader, nil
}

func (t *translation) refuse(setting, value, want string) {
	t.problems = append(t.problems, fmt.Errorf("%s: %q, want %s", setting, value, want))
}

// check adds the error about a setting, unless it is nil.
func (t *translation) check(setting string, err error) {
	if err != nil {
		t.problems = append(t.problems, fmt.Errorf("%s: %w", setting, err))
	}
}

// note adds a note about an accepted setting with another effect than in Reloader.
func (t *translation) note(setting, effect string) {
	t.Notes = append(t.Notes, program.Note{Setting: setting, Text: effect})
}

// isOn reports whether a flag that Reloader reads as text is on. As in Reloader, only "true" turns it on.
func (t *translation) isOn(flag, text string) bool {
	if text != "true" && text != "false" && text != "" {
		t.note(flag, fmt.Sprintf("off, because only true turns it on, not %q", text))
	}
	return text == "true"
}

// setReplica makes the program one of several replicas. All replicas watch, and one of them rolls.
func (t *translation) setReplica() {
	actuate := &t.Actuator.Actuate
	actuate.LeaderElect, actuate.LeaseNamespace, actuate.LeaseName = true, t.env.PodNamespace, leaseName(t.env.Deployment)
	if len(validation.IsDNS1123Subdomain(actuate.LeaseName)) > 0 {
		t.refuse("RELOADER_DEPLOYMENT_NAME", t.env.Deployment, "the name of this pod's Deployment with --enable-ha")
	}
	for _, variable := range [][2]string{{"POD_NAME", t.env.PodName}, {"POD_NAMESPACE", t.env.PodNamespace}} {
		if variable[1] == "" {
			t.refuse(variable[0], "", "the one of this pod with --enable-ha")
		}
	}
	if t.flags.WebhookURL != "" {
		t.refuse("--enable-ha", "true", "false with --webhook-url, which every replica would call")
	}
}

// leaseName returns the name of the Lease of a Deployment's replicas. Reloader has one Lease for a whole namespace, so of two releases with their own
// sources, only one would roll. The name is never that of an actuator's Lease.
func leaseName(deployment string) string {
	if deployment == "" {
		return "keyturn-reloader"
	}
	return "keyturn-reloader-" + deployment
}

func (t *translation) setWorkloads() {
	f, actuate := t.flags, &t.Actuator.Actuate
	actuate.Reloader.On, actuate.Reloader.Metrics, actuate.RollAll = true, true, f.AutoReloadAll
	if f.Settle < 0 {
		t.refuse("--settle", f.Settle.String(), "0 or more")
	}
	if f.MaxRollsPerHour < 0 {
		t.refuse("--max-rolls-per-hour", strconv.Itoa(f.MaxRollsPerHour), "0 or more")
	}
	actuate.Settle, actuate.MaxRollsPerHour = f.Settle, f.MaxRollsPerHour
	if t.isOn("--is-Argo-Rollouts", f.IsArgoRollouts) {
		actuate.WorkloadKinds = append(actuate.WorkloadKinds, "rollout")
	}
	actuate.RollOnCreate, actuate.RollOnDelete = plan.CreateNever, t.isOn("--reload-on-delete", f.ReloadOnDelete)
	if t.isOn("--reload-on-create", f.ReloadOnCreate) {
		actuate.RollOnCreate = plan.CreateAlways
	}
	jobs := map[string]bool{jobsStart: true, jobsRecreate: true}
	for _, text := range f.IgnoredWorkloadTypes {
		switch text {
		case "jobs":
			delete(jobs, jobsRecreate)
		case "cronjobs":
			delete(jobs, jobsStart)
			actuate.WorkloadKinds = slices.DeleteFunc(actuate.WorkloadKinds, func(kind string) bool { return kind == "cronjob" })
		default:
			t.refuse("--ignored-workload-types", text, "jobs, cronjobs or both")
		}
	}
	actuate.Jobs = slices.Sorted(maps.Keys(jobs))
	switch f.ReloadStrategy {
	case reloader.StrategyMarker, reloader.StrategyVariables:
		actuate.Reloader.Strategy = f.ReloadStrategy
	default:
		t.refuse("--reload-strategy", f.ReloadStrategy, reloader.StrategyVariables+" or "+reloader.StrategyMarker)
	}
}

// setAnnotations sets the keys of annotations that are not the default.
func (t *translation) setAnnotations() {
	defaults, keys := reloader.Default(), map[string]string{}
	named := defaults.Named()
	for name, key := range t.flags.Annotations.Named() {
		if *key != *named[name] {
			keys[name] = *key
		}
	}
	if _, err := reloader.Parse(keys); err != nil {
		// Here, each name is a flag.
		for line := range strings.SplitSeq(err.Error(), "\n") {
			t.problems = append(t.problems, errors.New("--"+strings.TrimPrefix(line, "--reloader: ")))
		}
	}
	t.Watcher.Sources.Reloader.Annotations, t.Actuator.Actuate.Reloader.Annotations = keys, keys
}

// setNotifications sets the sinks, and the webhook that is called instead of rolling.
func (t *translation) setNotifications() {
	f := t.flags
	t.Actuator.Notify.ConfigFile, t.Actuator.Actuate.Reloader.WebhookURL = f.NotifyConfig, f.WebhookURL
	t.Actuator.Call.URL = f.WebhookURL
	t.check("--webhook-url", t.Actuator.Call.Validate())
	for _, flag := range [][2]string{{"--reload-on-create", f.ReloadOnCreate}, {"--reload-on-delete", f.ReloadOnDelete}} {
		if f.WebhookURL != "" && flag[1] == "true" {
			t.refuse(flag[0], flag[1], "false with --webhook-url, which is called when content changes")
		}
	}
}

// setLog sets the level and format of the log. As in Reloader, the default replaces an unknown value.
func (t *translation) setLog() {
	f, log := t.flags, &t.Process.Log
	level, known := levels[strings.ToLower(f.LogLevel)]
	if !known {
		level = "info"
		t.note("--log-level", fmt.Sprintf("info, because %q is not trace, debug, info, warning, error, fatal or panic", f.LogLevel))
	}
	log.Level, log.Format = level, "text"
	switch f.LogFormat {
	case "":
	case "json":
		log.Format = f.LogFormat
	default:
		t.note("--log-format", fmt.Sprintf("text, because %q is not json", f.LogFormat))
	}
}

func (t *translation) setOperation() {
	f := t.flags
	if f.EnablePprof {
		if _, _, err := net.SplitHostPort(f.PprofAddr); err != nil {
			t.refuse("--pprof-addr", f.PprofAddr, "host:port or :port")
		}
		t.PprofAddr = f.PprofAddr
	}
	t.check("--cluster", events.ValidateCluster(f.Cluster))
	t.Process.Cluster, t.Process.MetricsAddr, t.StateDir = f.Cluster, f.MetricsAddr, f.StateDir
	t.Watcher.Process.Kube.Kubeconfig, t.Actuator.Process.Kube.Kubeconfig = f.Kubeconfig, f.Kubeconfig
	t.Watcher.Sources.KeyFile = f.FingerprintKeyFile
}
