package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/tests/testkit"
)

// projection returns one whose fields were applied.
func projection() Projection {
	return Projection{
		Cluster: testCluster, Verb: VerbApplied, ResourceVersion: "4720", Time: testTime, Cause: change().ID(),
		Trace: TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"},
		Target: Workload{
			Kind: "widget", Namespace: "shop", Name: "web-front", UID: "aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22", APIVersion: "example.org/v1", Resource: "widgets",
		},
		Reason: "applied", Message: "Applied spec.auth.password from secret/db.v2/password.",
		Fields: []ProjectedField{{Path: "spec.auth.password", Source: "secret/db.v2", Key: "password", ResourceVersion: "4711"}},
	}
}

// allProjections returns one of each type.
func allProjections() []Projection {
	skipped, failed := projection(), projection()
	skipped.Verb, skipped.Reason, skipped.Message = VerbSkipped, "secret-missing", "secret/db.v2 does not exist."
	skipped.Fields = []ProjectedField{{Path: "spec.auth.password", Source: "secret/db.v2", Key: "password"}}
	failed.Verb, failed.Reason, failed.Cause = VerbFailed, "conflict", ""
	failed.Message = "Another field manager owns spec.auth.password, and nothing is forced."
	return []Projection{projection(), skipped, failed}
}

func TestAProjectionIsReadAsItWasWritten(t *testing.T) {
	for _, want := range allProjections() {
		stored := throughTheWire(t, want)
		got, err := stored.Projection()
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", want.Verb, err, diff)
		}
		stored.Subject = strings.Replace(stored.Subject, "web-front", "web", 1)
		_, err = stored.Projection()
		wantReason(t, err, ReasonSubjectMismatch)
		if _, err := encoded(t, want).Outcome(); err == nil {
			t.Errorf("%s is taken for an outcome", want.Verb)
		}
	}
}

func TestAProjectionThatIsNotValidIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Projection){
		"a verb of others":          func(p *Projection) { p.Verb = VerbStarted },
		"a built-in kind":           func(p *Projection) { p.Target.Kind = "deployment" },
		"a reason with a line feed": func(p *Projection) { p.Reason = "a\nb" },
	} {
		p := projection()
		change(&p)
		t.Run(name, func(t *testing.T) {
			_, err := p.Encode()
			wantReason(t, err, ReasonMalformed)
		})
	}
}

// FuzzProjection checks that every projection that is read can be written, and is read again as the same.
func FuzzProjection(f *testing.F) {
	f.Add([]byte(`{"target":{"kind":"widget","namespace":"shop","name":"web","uid":"a","apiVersion":"example.org/v1","resource":"widgets"},"reason":"applied"}`))
	f.Add([]byte(`{"target":{"kind":"deployment"},"fields":[{"path":"spec.a"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		stored := throughTheWire(t, projection())
		stored.data = data
		p, err := stored.Projection()
		if err != nil {
			if _, typed := errors.AsType[*RejectError](err); !typed {
				t.Fatalf("the error is not typed: %v", err)
			}
			return
		}
		again, err := encoded(t, p).Projection()
		testkit.Must(t, err)
		testkit.WantEqual(t, "read again", p, again, cmpopts.EquateEmpty())
	})
}
