package main

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
)

func TestCountRequests(t *testing.T) {
	users := []string{"watcher", "actuator"}
	for _, tt := range []struct {
		name            string
		entries         []testbed.AuditEntry
		counted, events int
	}{
		{
			name: "patches of both users",
			entries: []testbed.AuditEntry{
				{AuditID: "1", User: "actuator", Verb: "patch", Resource: "deployments"},
				{AuditID: "2", User: "watcher", Verb: "list", Resource: "secrets"},
			},
			counted: 2,
		},
		{name: "of others none", entries: []testbed.AuditEntry{{AuditID: "1", User: "admin", Verb: "patch", Resource: "deployments"}}},
		{
			name: "a request with two entries once",
			entries: []testbed.AuditEntry{
				{AuditID: "1", User: "actuator", Verb: "patch", Resource: "deployments", Stage: "Panic"},
				{AuditID: "1", User: "actuator", Verb: "patch", Resource: "deployments", Stage: "ResponseComplete"},
			},
			counted: 1,
		},
		{
			name: "events apart, the lease and watches not at all",
			entries: []testbed.AuditEntry{
				{AuditID: "1", User: "actuator", Verb: "create", Resource: "events"},
				{AuditID: "2", User: "actuator", Verb: "update", Resource: "leases"},
				{AuditID: "3", User: "watcher", Verb: "watch", Resource: "secrets"},
			},
			events: 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			counted, events := countRequests(tt.entries, users)
			if counted != tt.counted || events != tt.events {
				t.Errorf("got %d and %d events, want %d and %d", counted, events, tt.counted, tt.events)
			}
		})
	}
}
