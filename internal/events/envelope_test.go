package events

import "testing"

func TestParseRefusesTheOther(t *testing.T) {
	asOutcome := mustEvent(t, change().Event)
	asOutcome.SetSource(sourceURI(testCluster, actuator))
	_, err := ParseOutcome(asOutcome)
	wantReason(t, err, ReasonUnknownType)

	asChange := mustEvent(t, outcome().Event)
	asChange.SetSource(sourceURI(testCluster, watcher))
	_, err = ParseChange(asChange)
	wantReason(t, err, ReasonUnknownType)

	other := mustEvent(t, outcome().Event)
	other.SetExtension("name", "other")
	_, err = ParseOutcome(other)
	wantReason(t, err, ReasonMalformed)
}

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
