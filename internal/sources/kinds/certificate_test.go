package kinds

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

// failingJSON is a Certificate that could not be renewed, with the canary wherever a value could be quoted.
const failingJSON = `{
	"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
	"metadata": {"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "5", "annotations": {"a": "` + canary + `"}},
	"spec": {"secretName": "web-tls", "dnsNames": ["` + canary + `"], "newer": {"field": 1}},
	"status": {"revision": 12, "notBefore": "2026-03-01T00:00:00Z", "notAfter": "2026-03-31T00:00:00Z", "renewalTime": "2026-03-21T00:00:00Z",
		"lastFailureTime": "2026-03-21T00:00:05Z", "failedIssuanceAttempts": 2, "newer": [1],
		"conditions": [
			{"type": "Ready", "status": "True", "reason": "Ready", "message": "` + canary + `", "newer": {}},
			{"type": "Issuing", "status": "False", "reason": "Denied", "message": "` + canary + `"}]}}`

func day(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }

func TestReduceKeepsTheStatusOfACertificate(t *testing.T) {
	got := heededOf(t, certificateKind{}, keyringOf(1), reloader.Default(), customOf(t, failingJSON))
	want := &Object{
		Source: events.Source{Kind: events.KindCertificate, Namespace: "shop", Name: "web"}, UID: "u", ResourceVersion: "5",
		extras: extras{details: &details{status: &status{verb: events.VerbFailed, fields: events.Status{
			Secret: "web-tls", Reason: "Denied", Revision: "12", NotAfter: day(31), RenewalTime: day(21),
		}}}},
	}
	testkit.WantEqual(t, "what is kept", want, got, everyField)
}

func TestTheStatusOfACertificate(t *testing.T) {
	const ready = `{"type": "Ready", "status": "True", "reason": "Ready"}`
	issuing := func(status, reason string) string {
		return `, {"type": "Issuing", "status": "` + status + `", "reason": "` + reason + `", "message": "` + canary + `"}`
	}
	body := func(conditions, fields string) string {
		return `{"spec": {"secretName": "web"}, "status": {"conditions": [` + conditions + `]` + fields + `}}`
	}
	have := func(verb events.Verb, revision, reason string) *status {
		return &status{verb: verb, fields: events.Status{Secret: "web", Revision: revision, Reason: reason}}
	}
	for _, tt := range []struct {
		name, resource string
		want           *status
	}{
		{"one that was issued", body(ready, `, "revision": 1`), have(events.VerbIssued, "1", "Ready")},
		{"one that is being issued for the first time", body(`{"type": "Ready", "status": "False", "reason": "DoesNotExist"}`+issuing("True", "DoesNotExist"), ``), have("", "", "DoesNotExist")},
		{"one that is being renewed", body(ready+issuing("True", "Renewing"), `, "revision": 1`), have("", "1", "Ready")},
		{"one that could not be issued", body(ready+issuing("False", "Failed"), `, "revision": 1, "lastFailureTime": "2026-03-21T00:00:05Z"`), have(events.VerbFailed, "1", "Failed")},
		{"one that could not be issued, without a condition", body(ready, `, "revision": 1, "lastFailureTime": "2026-03-21T00:00:05Z"`), have(events.VerbFailed, "1", "Failed")},
		{"one that is tried again", body(ready+issuing("True", "Renewing"), `, "revision": 1, "failedIssuanceAttempts": 1, "lastFailureTime": "2026-03-21T00:00:05Z"`), have("", "1", "Ready")},
		{"one whose status cannot be decoded", `{"spec": {"secretName": "web"}, "status": {"revision": "x"}}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "status", tt.want, issueStatus(customOf(t, tt.resource)), cmp.AllowUnexported(status{}))
		})
	}
}

func TestACertificateThatCouldNotBeRenewedIsLookedAtAgain(t *testing.T) {
	name := events.Source{Kind: events.KindCertificate, Namespace: "shop", Name: "web"}
	failing := reducedOf(t, certificateKind{}, customOf(t, failingJSON))
	renewed := &Object{Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "web-tls"}, extras: extras{details: &details{
		writer: events.Cause{Source: "certificate/web", NotAfter: day(40)},
	}}}
	for _, tt := range []struct {
		name     string
		now      time.Time
		secret   *Object
		rechecks []recheck
		expiring bool
	}{
		{"when its renewal is due", day(20), nil, []recheck{{name, 24 * time.Hour}}, false},
		{"not when that is past", day(21), nil, nil, true},
		{"not where its Secret has a later certificate", day(20), renewed, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := viewOf(t, tt.now)
			if tt.secret != nil {
				v = viewOf(t, tt.now, tt.secret)
			}
			change, ok := certificateKind{}.Assess(v.View, nil, State{Now: failing})
			if !ok || change.Status.Expiring != tt.expiring {
				t.Errorf("event %+v, %t, want one that says expiring %t", change, ok, tt.expiring)
			}
			testkit.WantEqual(t, "rechecks", tt.rechecks, v.rechecks, cmp.AllowUnexported(recheck{}))
		})
	}
}

func TestAStatusThatCannotBeReadIsReportedAndSaysNothing(t *testing.T) {
	for _, kind := range []Kind{certificateKind{}, externalSecretKind{}} {
		odd := reducedOf(t, kind, customOf(t, `{"metadata": {"namespace": "shop", "name": "odd"}, "status": []}`))
		v := viewOf(t, epoch)
		if change, ok := kind.Assess(v.View, nil, State{Now: odd}); ok {
			t.Errorf("event %+v", change)
		}
		if !strings.Contains(v.log.String(), "source="+odd.Source.String()) {
			t.Errorf("the log is:\n%s", v.log.String())
		}
	}
}
