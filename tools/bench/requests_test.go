package main

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
)

func TestRequestsForEventsAndOthersAreCounted(t *testing.T) {
	events, others := countRequests([]testbed.AuditEntry{
		{AuditID: "1", User: "actuator", Verb: "patch", Resource: "deployments", Stage: "Panic"},
		{AuditID: "1", User: "actuator", Verb: "patch", Resource: "deployments", Stage: "ResponseComplete"},
		{AuditID: "2", User: "watcher", Verb: "list", Resource: "secrets"},
		{AuditID: "3", User: "admin", Verb: "patch", Resource: "deployments"},
		{AuditID: "4", User: "actuator", Verb: "create", Resource: "events"},
		{AuditID: "5", User: "actuator", Verb: "update", Resource: "leases"},
		{AuditID: "6", User: "watcher", Verb: "watch", Resource: "secrets"},
	}, []string{"watcher", "actuator"})
	if events != 1 || others != 2 {
		t.Errorf("got %d for Events and %d others, want 1 and 2", events, others)
	}
}
