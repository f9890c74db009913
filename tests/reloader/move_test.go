package reloader

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// movers are the workloads of a cluster that Reloader manages with a strategy, which all read the Secret db.
type movers struct {
	*rig
	strategy string
}

// moved are their names.
var moved = []string{"deployment/web", "statefulset/web", "daemonset/web"}

func newMovers(t *testing.T, strategy string) *movers {
	t.Helper()
	m := &movers{newRig(t), strategy}
	m.secret("db", map[string]string{"password": "one"})
	m.deploy("web", auto(), readDB)
	d := m.deployment("web")
	meta := metav1.ObjectMeta{Name: "web", Annotations: auto()}
	_, err := m.client.AppsV1().StatefulSets(m.namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}, metav1.CreateOptions{})
	testkit.Must(t, err)
	_, err = m.client.AppsV1().DaemonSets(m.namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}, metav1.CreateOptions{})
	testkit.Must(t, err)
	m.placeSentinels(auto())
	return m
}

func (m *movers) startBeside() {
	m.Helper()
	m.start("--reload-strategy", m.strategy)
}

// change changes the Secret. If reloaderRolls, Reloader rolls for it.
func (m *movers) change(password string, reloaderRolls bool) {
	m.Helper()
	data := map[string]string{"password": password}
	m.secret("db", data)
	for _, workload := range moved {
		if !reloaderRolls {
			return
		}
		roll := programs.Reload{
			Namespace: m.namespace, Workload: workload, Kind: "SECRET", Name: "db", Data: data, Strategy: m.strategy,
		}
		testkit.Must(m, roll.Send(m.Context(), m.client))
	}
}

// frozen does something that the command sees all at once.
func (m *movers) frozen(do func()) {
	m.Helper()
	testkit.Must(m, m.program.Suspend())
	do()
	testkit.Must(m, m.program.Resume())
}

// rollsEach does something, and fails the test unless it rolls each workload so often, and no more until later changes have rolled the sentinels.
func (m *movers) rollsEach(what string, want int64, do func()) {
	m.Helper()
	count := func() map[string]int64 {
		writes, err := m.templates.Writes(m.Context())
		testkit.Must(m, err)
		return writes
	}
	before := count()
	do()
	testkit.Await(m.T, what, func(context.Context) bool {
		now := m.templates.Seen()
		for _, workload := range moved {
			if now[workload]-before[workload] < want {
				return false
			}
		}
		return true
	})
	m.passSentinels()
	for now, i := count(), 0; i < len(moved); i++ {
		if got := now[moved[i]] - before[moved[i]]; got != want {
			m.Errorf("%s: %s was rolled %d times, want %d", what, moved[i], got, want)
		}
	}
}

func TestAMoveFromReloaderAndBackRollsOnceForEachChange(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"env-vars", "annotations"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			m := newMovers(t, strategy)
			m.change("one", true) // What is left in the templates since Reloader's last roll.
			m.rollsEach("the command starts beside Reloader", 0, m.startBeside)
			m.rollsEach("Reloader rolls while both run", 1, func() { m.frozen(func() { m.change("two", true) }) })
			m.rollsEach("Reloader rolls for content that was there before", 1, func() { m.frozen(func() { m.change("one", true) }) })
			m.rollsEach("Reloader ends, and the content changes", 1, func() { m.change("three", false) })
			m.rollsEach("Reloader is back beside the command", 1, func() { m.frozen(func() { m.change("four", true) }) })
			m.stop()
			m.rollsEach("the command starts after a change that Reloader has rolled", 1, func() {
				m.change("five", true)
				m.startBeside()
			})
			m.stop()
			m.rollsEach("the command starts after a change that Reloader has missed", 1, func() {
				m.change("six", false)
				m.startBeside()
			})
		})
	}
}
