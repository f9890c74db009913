package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheReportShowsTheEvidence(t *testing.T) {
	s := newScene()
	s.db(10, "3", "1")
	s.app(100, "3")
	s.rolled(103, 4, 100)
	s.rolled(104, 4, 100)
	r := &report{
		settings: settings{seed: 42, duration: time.Hour, workloads: 1, actuators: 1, kinds: []kind{watcherKill, etcdKill}},
		evidence: evidence{journal: s.journal, readers: []reader{web}, from: prepared, told: s.told},
		faults:   []inflicted{{kind: etcdKill, from: clock(95), to: clock(101), what: "killed etcd"}},
	}
	r.incidents = r.evidence.verdict()
	if !r.failed() {
		t.Fatal("a run with a loss and a double has not failed")
	}
	var text strings.Builder
	r.print(&text)
	for _, want := range []string{
		"LOST: deployment/web its pods are new enough, of version 104, by another roll; the record says 4",
		"DOUBLED: deployment/web roll 104 records",
		"secret/db@10 changes what is read",
		"deployment/web@103 is rolled to 103; its record is configmap/app@100, secret/db@4",
		"etcd-kill is over: killed etcd",
		"Seed 42, 1h0m0s with faults, 1 workloads, 1 actuators",
		"| watcher-kill | 0 |  | 0 | 0 | 0 | 0 | 0 | 0 |  |",
		"| etcd-kill | 1 | 6.0 s | 1 | 2 | 0 | 1 | 0 | 0 | 2.0 s |",
		"| none | 0 |  | 1 | 0 | 1 | 0 | 0 | 0 |  |",
		"2 writes, and 2 rolls: 1 lost 1 doubled 0 untold 0 broken",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}
