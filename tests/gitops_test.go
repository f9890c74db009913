package tests

import (
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// gitopsApps are one application for each way in which a tool applies it.
func gitopsApps(t *testing.T) []gitopsApp {
	t.Helper()
	argo, flux := startArgoCD(t), startFlux(t)
	helm, kubectl := tool(t, build.Helm), tool(t, build.Kubectl)
	with := func(options string) argoCD {
		a := argo
		a.options = options
		return a
	}
	comparing := with("ServerSideApply=true")
	comparing.annotations = "argocd.argoproj.io/compare-options: ServerSideDiff=true"
	keeping := with("Replace=true, RespectIgnoreDifferences=true")
	keeping.ignored = argoCDIgnores
	forcing := flux
	forcing.force = true
	upgrade := func(args ...string) byHand {
		return byHand{binary: helm, chart: true, first: []string{"install"}, next: append([]string{"upgrade"}, args...)}
	}
	apply := func(first, next string) byHand {
		return byHand{binary: kubectl, first: []string{first}, next: []string{next}}
	}
	return []gitopsApp{
		{way: "Argo CD applies", name: "argo", jobs: true, tool: argo, heals: true},
		{way: "Argo CD applies on the server", name: "argo-server", jobs: true, tool: with("ServerSideApply=true"), heals: true},
		{way: "Argo CD applies and compares on the server", name: "argo-diff", jobs: true, tool: comparing, heals: true},
		{way: "Argo CD replaces", name: "argo-replace", tool: with("Replace=true"), heals: true, other: 1, replaces: true, forgets: true, sticks: true},
		{way: "Argo CD replaces what differs", name: "argo-differs", tool: with("Replace=true, ApplyOutOfSyncOnly=true"), heals: true, replaces: true, sticks: true},
		{way: "Argo CD replaces and keeps what it ignores", name: "argo-keeps", tool: keeping, heals: true, forgets: true, sticks: true},
		{way: "Flux applies", name: "flux", jobs: true, tool: flux, forgets: true},
		{way: "Flux applies, and recreates what it cannot", name: "flux-force", jobs: true, tool: forcing, manager: "by-hand"},
		{way: "Helm upgrades on the server", name: "helm", jobs: true, tool: upgrade("--server-side=true")},
		{way: "Helm upgrades with patches", name: "helm-patch", jobs: true, tool: upgrade("--server-side=false")},
		{way: "Helm replaces", name: "helm-replace", tool: upgrade("--server-side=false", "--force-replace"), again: 1, other: 1, replaces: true, forgets: true},
		{way: "kubectl applies", name: "kubectl", jobs: true, tool: apply("apply", "apply")},
		{way: "kubectl replaces", name: "kubectl-replace", tool: apply("create", "replace"), again: 1, other: 1, replaces: true, forgets: true},
	}
}

// gitopsStep is what happens to all applications.
type gitopsStep struct {
	name string
	// writes is how often the pod template of an application is written meanwhile, by anyone.
	writes func(gitopsApp) int64
	// idle means that Argo CD and Flux write nothing.
	idle bool
	do   func()
}

func TestGitOpsToolsAndKeyturnShareWorkloads(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	r := newGitopsRig(t, gitopsApps(t), programs.Options{ActuatorArgs: []string{"--jobs", "start,recreate"}})
	begin := auditEnd(r)
	r.change()
	r.install()
	r.placeFence()
	r.startActuator("--roll-all")
	r.startWatcher()

	once := func(gitopsApp) int64 { return 1 }
	none := func(gitopsApp) int64 { return 0 }
	again := func(a gitopsApp) int64 { return a.again }
	other := func(a gitopsApp) int64 { return a.other }
	r.play([]gitopsStep{
		{"a changed Secret rolls each once, and is reported as no difference", once, true, func() { r.change(); r.awaitAll() }},
		{"a sync without a change takes nothing back, but for a replacement", again, true, func() { r.release("nothing has changed") }},
		{"a changed Secret rolls each once after the sync", once, true, r.change},
		{"a release of something else takes nothing back, but for a replacement", other, false, r.releaseNotes},
		{"a changed Secret rolls each once after the release", once, true, r.change},
		{"what somebody edits is healed by Argo CD alone", func(a gitopsApp) int64 { return 2 * onlyIf(a.heals) }, false, r.edit},
		{"a release rolls each once", once, false, func() { r.image++; r.release("a release") }},
		// A tool on a busy machine takes longer from the ConfigMap to the Deployment than the default --settle.
		{"both programs start with a long debounce", none, true, func() { r.restart("--roll-all", "--settle", "10s") }},
		{"a release with its configuration rolls each once", once, false, func() {
			r.image++
			r.config++
			r.release("a release with its configuration")
		}},
		{"both programs start once more", none, true, func() { r.restart("--roll-all") }},
		{"a changed configuration rolls each once", once, false, func() { r.config++; r.release("other configuration") }},
		{"a changed Secret rolls each once at last", once, true, r.change},
	})
	// Four changes of the Secret and one of the configuration. Another came with a release, whose pods have it.
	r.countRolls(5, 1)
	r.countJobs(begin, 5, 4)

	// From here on the actuator does not roll all.
	r.play([]gitopsStep{
		{"a changed Secret rolls none that does not opt in", none, true, func() { r.restart(); r.change() }},
		{"somebody opts in by hand, and a changed Secret rolls each once", once, true, func() {
			r.annotate("keyturn.dev/roll-on=auto")
			r.passFence()
			r.change()
		}},
		{"a release of something else removes what is set by hand from some", other, false, r.releaseNotes},
		{"a changed Secret rolls each once that still opts in", func(a gitopsApp) int64 { return onlyIf(!a.forgets) }, true, r.change},
		{"the manifests opt in", func(a gitopsApp) int64 { return onlyIf(a.replaces && !a.forgets) }, false, func() {
			r.annotate("keyturn.dev/roll-on-")
			r.annotations = ", keyturn.dev/roll-on: auto"
			r.release("opt in")
		}},
		{"a changed Secret rolls each once that opts in by its manifest", once, true, r.change},
	})
	r.changeDuringASync()
	r.play([]gitopsStep{
		{"the manifests do not opt in any more", none, false, func() { r.annotations = ""; r.release("opt out") }},
		{"a changed Secret rolls what did not see that", func(a gitopsApp) int64 { return onlyIf(a.sticks) }, true, r.change},
	})
}

func onlyIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
