package tests

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testbed/build"
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
		{way: "Argo CD applies", name: "argo", tool: argo, heals: true},
		{way: "Argo CD applies on the server", name: "argo-server", tool: with("ServerSideApply=true"), heals: true},
		{way: "Argo CD applies and compares on the server", name: "argo-diff", tool: comparing, heals: true},
		{way: "Argo CD replaces", name: "argo-replace", tool: with("Replace=true"), heals: true, other: 1},
		{way: "Argo CD replaces what differs", name: "argo-differs", tool: with("Replace=true, ApplyOutOfSyncOnly=true"), heals: true},
		{way: "Argo CD replaces and keeps what it ignores", name: "argo-keeps", tool: keeping, heals: true},
		{way: "Flux applies", name: "flux", tool: flux},
		{way: "Flux applies, and recreates what it cannot", name: "flux-force", tool: forcing},
		{way: "Helm upgrades on the server", name: "helm", tool: upgrade("--server-side=true")},
		{way: "Helm upgrades with patches", name: "helm-patch", tool: upgrade("--server-side=false")},
		{way: "Helm replaces", name: "helm-replace", tool: upgrade("--server-side=false", "--force-replace"), again: 1, other: 1},
		{way: "kubectl applies", name: "kubectl", tool: apply("apply", "apply")},
		{way: "kubectl replaces", name: "kubectl-replace", tool: apply("create", "replace"), again: 1, other: 1},
	}
}

func TestGitOpsToolsAndKeyturnShareWorkloads(t *testing.T) {
	t.Parallel()
	r := newGitopsRig(t, gitopsApps(t))
	r.change()
	r.install()
	r.placeFence()
	r.startActuator("--roll-all")
	r.startWatcher()

	once := func(gitopsApp) int64 { return 1 }
	none := func(gitopsApp) int64 { return 0 }
	for _, step := range []struct {
		name string
		// writes is how often the pod template of an application is written, by anyone.
		writes func(gitopsApp) int64
		// idle means that Argo CD and Flux write no Deployment.
		idle bool
		do   func()
	}{
		{"a changed Secret rolls each once, and is reported as no difference", once, true, func() { r.change(); r.awaitAll() }},
		{"a sync without a change takes nothing back, but for a replacement", func(a gitopsApp) int64 { return a.again }, true, func() {
			r.release("nothing has changed")
		}},
		{"a changed Secret rolls each once after the sync", once, true, r.change},
		{"a release of something else takes nothing back, but for a replacement", func(a gitopsApp) int64 { return a.other }, false, func() {
			r.notes++
			r.release("other notes")
		}},
		{"a changed Secret rolls each once after the release", once, true, r.change},
		{"what somebody edits is healed by Argo CD alone", func(a gitopsApp) int64 {
			if a.heals {
				return 2 // The edit, and what takes it back.
			}
			return 0
		}, false, r.edit},
		{"a release rolls each once", once, false, func() {
			r.image++
			r.release("a release")
		}},
		{"a release with its configuration rolls each once", once, false, func() {
			r.image++
			r.config++
			r.release("a release with its configuration")
		}},
		{"a changed configuration rolls each once", once, false, func() {
			r.config++
			r.release("other configuration")
		}},
		{"both programs start once more", none, true, r.restart},
		{"a changed Secret rolls each once at last", once, true, r.change},
	} {
		want := tally{}
		for _, app := range r.apps {
			if n := step.writes(app); n > 0 {
				want[app.workload()] = n
			}
		}
		begin := r.auditEnd()
		r.rolls(step.name, want, step.do)
		if writes := r.writesOfTools(begin); step.idle && len(writes) > 0 {
			t.Errorf("%s: Argo CD and Flux have written %q", step.name, writes)
		}
		if t.Failed() {
			t.FailNow() // What follows would only say so again.
		}
	}
	// Four changes of the Secret and one of the configuration. Another came with a release, whose pods have it.
	r.countRolls(5, 1)
}
