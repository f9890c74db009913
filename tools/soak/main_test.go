package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	defaults := settings{duration: time.Hour, seed: 7, workloads: 200, actuators: 1, kinds: kindsFor(1), root: "."}
	with := func(change func(*settings)) settings {
		s := defaults
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name string
		args []string
		want settings
		err  string
	}{
		{
			name: "all flags", args: []string{"-duration", "2m", "-seed", "1", "-workloads", "3", "-keep", "x", "-faults", "etcd-kill, store-rollback"},
			want: with(func(s *settings) {
				s.duration, s.seed, s.workloads, s.keep, s.kinds = 2*time.Minute, 1, 3, "x", []kind{etcdKill, storeRollback}
			}),
		},
		{
			name: "three actuators have all faults but one", args: []string{"-actuators", "3"},
			want: with(func(s *settings) { s.actuators, s.kinds = 3, kindsFor(3) }),
		},
		{name: "the store of one of three cannot be rolled back", args: []string{"-actuators", "3", "-faults", "store-rollback"}, err: "with 3 actuators"},
		{name: "a fault that is none", args: []string{"-faults", "flood"}, err: `-faults: "flood" is none`},
		{name: "two actuators", args: []string{"-actuators", "2"}, err: "want 1 or 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(tt.args, 7)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error with %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(settings{})); diff != "" || err != nil {
				t.Errorf("settings, %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
