package events

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestOutcomeSurvivesTheWire(t *testing.T) {
	for _, want := range append(allOutcomes(), configuredOutcome()) {
		t.Run(string(want.Verb)+" "+want.Workload.Kind, func(t *testing.T) {
			got, err := throughTheWire(t, want).Outcome()
			testkit.Must(t, err)
			testkit.WantEqual(t, "difference", want, got)
		})
	}
}

func TestAnOutcomeOfAReasonThatWasRenamedHasTheNewName(t *testing.T) {
	for _, verb := range []Verb{VerbStarted, VerbHeld, VerbSkipped} {
		for before, now := range renamedReasons {
			want := outcome()
			want.Verb, want.Reason = verb, before
			if verb != VerbStarted {
				want.Generation, want.StartedAt = 0, time.Time{}
			}
			got, err := throughTheWire(t, want).Outcome()
			testkit.Must(t, err)
			want.Reason = now
			testkit.WantEqual(t, string(verb)+" "+before, want, got)
		}
	}
}

func TestOutcomeIsNotPublishedWhen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		alter func(*Outcome)
	}{
		{"the kind of the workload is not known", func(o *Outcome) { o.Workload.Kind = "pod" }},
		{"the place of a configured kind is missing", func(o *Outcome) { o.Workload.Kind = "widget" }},
		{"the place of a configured kind leaves the API", func(o *Outcome) {
			o.Workload.Kind, o.Workload.APIVersion, o.Workload.Resource = "widget", "../../api/v1", "secrets"
		}},
		{"a known kind names a place", func(o *Outcome) { o.Workload.APIVersion, o.Workload.Resource = "example.org/v1", "widgets" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := outcome()
			tt.alter(&o)
			_, err := o.Encode()
			wantReason(t, err, ReasonMalformed)
		})
	}
}

func FuzzOutcome(f *testing.F) {
	for _, o := range append(allOutcomes(), configuredOutcome()) {
		e := encoded(f, o).Event()
		f.Add(e.Type(), e.ID(), e.Subject(), o.Workload.Kind, o.Workload.Name, o.Workload.UID, o.Cause, e.Data())
	}
	f.Fuzz(func(t *testing.T, of, id, link, kind, name, uid, cause string, data []byte) {
		header := headerOf(map[string]string{
			"type": of, "id": id, "source": "k8s://prod-eu/actuator", "subject": link, "clustername": testCluster, "kind": "rollout",
			"partitionkey": testCluster + "/" + uid, "namespace": "shop", "name": name, "workloadkind": kind, "causationid": cause,
		})
		subject := OutcomeSubject(testCluster, Workload{Kind: kind, Namespace: "shop", Name: name})
		o, err := NewStored(subject, 1, testTime, header, data).Outcome()
		if err != nil {
			return
		}
		if _, err := ParseSubject(OutcomeSubject(o.Cluster, o.Workload)); err != nil {
			t.Fatal(err)
		}
		if _, err := encoded(t, o).Outcome(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSelfLinks(t *testing.T) {
	for kind, want := range map[string]string{
		"deployment":  "/apis/apps/v1/namespaces/shop/deployments/web",
		"statefulset": "/apis/apps/v1/namespaces/shop/statefulsets/web",
		"daemonset":   "/apis/apps/v1/namespaces/shop/daemonsets/web",
		"cronjob":     "/apis/batch/v1/namespaces/shop/cronjobs/web",
		"job":         "/apis/batch/v1/namespaces/shop/jobs/web",
		"rollout":     "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web",

		"externalsecret": "/apis/external-secrets.io/v1/namespaces/shop/externalsecrets/web",
		"pod":            "",
	} {
		if got := (Workload{Kind: kind, Namespace: "shop", Name: "web"}).selfLink(); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestAWorkloadOfAConfiguredKindSaysWhereItIs(t *testing.T) {
	for _, tt := range []struct {
		name, kind, apiVersion, resource string
		want                             string
	}{
		{
			"a custom resource", "prometheus", "monitoring.coreos.com/v1", "prometheuses",
			"/apis/monitoring.coreos.com/v1/namespaces/shop/prometheuses/web",
		},
		{"a kind that readers know", "deployment", "example.org/v1", "deployments", ""},
		{"a group of Kubernetes without a domain", "widget", "apps/v1", "widgets", ""},
		{"a path in the version", "widget", "example.org/v1/namespaces/other", "widgets", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := Workload{Kind: tt.kind, Namespace: "shop", Name: "web", APIVersion: tt.apiVersion, Resource: tt.resource}
			testkit.WantEqual(t, "self link", tt.want, w.selfLink())
		})
	}
}
