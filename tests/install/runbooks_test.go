package install

import (
	"context"
	"strings"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/docpages"
)

// runbooksPage has a section for each alert.
const runbooksPage = "../../docs/operate/alerts.md"

// fault is what fires a critical alert.
type fault struct {
	// begin makes it, and end ends it.
	begin, end func()
	// shows has what each command of the runbook prints, in order. A command that is to fail, as kubectl keyturn check does when it finds something,
	// has fails there.
	shows []string
}

// fails is for a command that ends with an error.
const fails = "!"

// faults has one for each critical alert.
func (r *release) faults(c *commands) map[string]fault {
	actuatorRuns := func() {
		c.shell("kubectl -n keyturn-system rollout status statefulset/keyturn-actuator")
		r.actuator = r.kubelet.runReady("actuator")
	}
	restart := func() {
		r.actuator.StopIn(r.T, testkit.Patience)
		actuatorRuns()
	}
	grant := func() { c.shell("kubectl apply -f deploy/base/rbac.yaml") }
	return map[string]fault{
		"KeyturnDown": {
			begin: func() {
				c.shell("kubectl -n keyturn-system scale statefulset keyturn-actuator --replicas 0")
				r.actuator.StopIn(r.T, testkit.Patience)
				testkit.Await(r.T, "its pod is gone", func(context.Context) bool { return len(r.kubelet.pods("actuator")) == 0 })
			},
			end: func() {
				c.shell("kubectl -n keyturn-system scale statefulset keyturn-actuator --replicas 1")
				actuatorRuns()
			},
			shows: []string{fails, "keyturn-watcher-", "nats disconnected"},
		},
		"KeyturnNoLeader": {
			begin: func() { c.shell("kubectl -n keyturn-system delete rolebinding keyturn-actuator-leader") },
			end: func() {
				grant()
				testkit.Await(r.T, "an actuator leads", func(context.Context) bool { return r.actuator.Leads() })
			},
			shows: []string{"holderIdentity: ", fails, "leases"},
		},
		"KeyturnDryRun": {
			begin: func() {
				c.shell("kubectl -n keyturn-system set env statefulset/keyturn-actuator KEYTURN_DRY_RUN=true")
				restart()
			},
			end:   restart,
			shows: []string{"Dry run: no workload is rolled.", "KEYTURN_DRY_RUN", "statefulset.apps/keyturn-actuator env updated"},
		},
		"KeyturnNATSFailing": {
			begin: func() {
				r.actuator.StopIn(r.T, testkit.Patience)
				r.kubelet.awaitSidecars("actuator") // The watcher must not publish to the NATS server that is about to end.
				c.shell(`kubectl -n example patch secret db -p '{"stringData":{"password":"during the fault"}}'`)
			},
			end:   actuatorRuns,
			shows: []string{fails, "data-keyturn-actuator-0", "cannot publish an event; retrying"},
		},
		"KeyturnPermissionMissing": {
			begin: func() {
				c.shell("kubectl delete clusterrolebinding keyturn-watcher")
				c.awaitRight("refused", "list secrets --all-namespaces --as system:serviceaccount:keyturn-system:keyturn-watcher")
				r.watcher.StopIn(r.T, testkit.Patience)
				r.watcher = r.kubelet.run("watcher") // Its watches would go on until the API server ends them.
			},
			end: func() {
				grant()
				r.watcher.AwaitReady(r.T, testkit.Patience)
			},
			shows: []string{"permission missing", "clusterrole.rbac.authorization.k8s.io/keyturn-watcher", "keyturn-actuator-leader"},
		},
	}
}

// runbooks runs the commands of the runbooks: those of a critical alert while there is what fires it.
func (r *release) runbooks() {
	r.Helper()
	content := testkit.ReadFile(r.T, runbooksPage)
	c := newCommands(r, runbooksPage)
	c.plugin()
	faults := r.faults(c)
	_, sections, _ := strings.Cut(content, "\n## ")
	for section := range strings.SplitSeq(sections, "\n## ") {
		alert, text, _ := strings.Cut(section, "\n")
		var runbook []string
		for _, command := range docpages.Commands(text) {
			if !command.Inline {
				runbook = append(runbook, command.Line)
			}
		}
		f, isThere := faults[alert]
		if critical := strings.HasPrefix(strings.TrimSpace(text), "`critical`"); critical != isThere {
			r.Errorf("%s: is critical: %t, has a fault: %t", alert, critical, isThere)
			continue
		}
		if !isThere {
			for _, command := range runbook {
				c.shell(mayFind(command))
			}
			continue
		}
		r.part("the runbook of "+alert+" shows what is wrong", func() { c.show(f, runbook) })
	}
}

// mayFind is a command that may end with an error, if it finds what is no fault here: no Prometheus Operator.
func mayFind(command string) string {
	if strings.HasPrefix(command, "kubectl keyturn check") {
		return command + " || true"
	}
	return command
}

// show runs the commands of a runbook while there is a fault, until each shows it.
func (c *commands) show(f fault, runbook []string) {
	c.Helper()
	if len(runbook) != len(f.shows) {
		c.Fatalf("the runbook has %d commands, want %d: %q", len(runbook), len(f.shows), runbook)
	}
	f.begin()
	for i, command := range runbook {
		if f.shows[i] == fails {
			testkit.Await(c.T, command+" fails", func(context.Context) bool {
				return strings.HasSuffix(c.shell("{ "+command+"; } || echo it fails"), "it fails\n")
			})
			continue
		}
		var out string
		testkit.Await(c.T, command+" shows "+f.shows[i], func(context.Context) bool {
			out = c.shell("{ " + command + "; } || true")
			return strings.Contains(out, f.shows[i])
		}, func() string { return "it prints:\n" + out })
	}
	f.end()
}
