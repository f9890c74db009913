package events

import (
	"cmp"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestValidateRefusesAnotherSubject(t *testing.T) {
	for _, subject := range []string{
		"keyturn.v1.other.secret.shop.db_v2", "keyturn.v1.prod-eu.configmap.shop.db_v2",
		"keyturn.v1.prod-eu.secret.bank.db_v2", "keyturn.v1.prod-eu.secret.shop.db",
	} {
		wantReason(t, matchSubject(subject, change()), ReasonSubjectMismatch)
	}
	for _, subject := range []string{"keyturn.v1.prod-eu.rollout.shop.statefulset-web-front", "keyturn.v1.prod-eu.rollout.shop.deployment-web"} {
		wantReason(t, matchSubject(subject, outcome()), ReasonSubjectMismatch)
	}
	wantReason(t, matchSubject("keyturn.v2.prod-eu.secret.shop.db_v2", change()), ReasonUnknownVersion)
	wantReason(t, matchSubject("orders.new", outcome()), ReasonMalformed)
}

func TestImpersonated(t *testing.T) {
	own := change()
	for _, tt := range []struct {
		name    string
		subject string
		alter   func(headers)
		want    string
	}{
		{name: "an event of its own"},
		{name: "an event of another cluster", subject: "keyturn.v1.prod-ap.secret.shop.db", want: testCluster},
		{name: "the source attribute of another cluster", alter: func(h headers) { h["ce-source"] = []string{"k8s://prod-ap/watcher"} }, want: "prod-ap"},
		{name: "the cluster attribute of another", alter: func(h headers) { h["ce-clustername"] = []string{"prod-ap"} }, want: "prod-ap"},
		{
			name: "what cannot be read says nothing", subject: "keyturn.v1.prod-ap.secret.shop.db",
			alter: func(h headers) { h["ce-source"] = []string{"urn:x"} },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, data := message(t, own)
			if tt.alter != nil {
				tt.alter(header)
			}
			stored := NewStored(cmp.Or(tt.subject, own.Subject()), 1, testTime, header, data)
			testkit.WantEqual(t, "cluster", tt.want, stored.Impersonated())
		})
	}
}
