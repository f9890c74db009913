package reloader

import (
	"testing"
)

func TestNamespacesAreScopedAsByReloader(t *testing.T) {
	for _, tt := range []struct {
		name string
		// everywhere means that the command rolls in the namespaces of other tests, too: they must not run meanwhile.
		everywhere bool
		// start starts the command, which is to roll in the namespace of the first rig and not in that of the second.
		start func(in, out *rig)
	}{
		{"KUBERNETES_NAMESPACE", false, func(in, _ *rig) { in.startWith([]string{"KUBERNETES_NAMESPACE=" + in.namespace}) }},
		{"--namespaces before KUBERNETES_NAMESPACE", false, func(in, out *rig) {
			in.startWith([]string{"KUBERNETES_NAMESPACE=" + out.namespace}, "--namespaces", in.namespace)
		}},
		{"--namespaces-to-ignore", true, func(in, out *rig) { in.startWith(nil, "--namespaces-to-ignore", out.namespace) }},
		{"--namespace-selector as key:value", false, func(in, _ *rig) {
			in.startWith(nil, "--namespace-selector", "kubernetes.io/metadata.name:"+in.namespace)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.everywhere {
				t.Parallel()
			}
			in, out := newRig(t), newRig(t)
			for _, r := range []*rig{in, out} {
				r.secret("db", map[string]string{"password": "one"})
				r.deploy("web", auto(), readDB)
			}
			tt.start(in, out)
			before := out.writes("web")
			in.leaves("web", func() { out.secret("db", map[string]string{"password": "two"}) })
			if now := out.writes("web"); now != before {
				t.Errorf("web of the other namespace was rolled %d times, want none", now-before)
			}
			in.rolls("web", func() { in.secret("db", map[string]string{"password": "two"}) })
		})
	}
}
