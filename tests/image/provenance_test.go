package image

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// checkProvenance checks what an artifact says of how an image was made.
func checkProvenance(t *testing.T, a archive, d, subject descriptor, revision string) {
	t.Helper()
	var m manifest
	a.blob(t, d, &m)
	if m.Subject == nil || m.Subject.Digest != subject.Digest {
		t.Errorf("the artifact is about %v, want %s", m.Subject, subject.Digest)
	}
	type digested struct {
		URI    string
		Digest map[string]string
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []digested
		Predicate     struct {
			BuildDefinition struct {
				ExternalParameters, InternalParameters map[string]string
				ResolvedDependencies                   []digested
			}
		}
	}
	a.blob(t, m.Layers[0], &statement)
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" ||
		m.Config.MediaType != "application/vnd.in-toto+json" {
		t.Errorf("it is a %q of %q in a %q", statement.Type, statement.PredicateType, m.Config.MediaType)
	}
	algorithm, digest, _ := strings.Cut(subject.Digest, ":")
	if len(statement.Subject) != 1 || statement.Subject[0].Digest[algorithm] != digest {
		t.Errorf("it is of %v, want %s", statement.Subject, subject.Digest)
	}
	definition := statement.Predicate.BuildDefinition
	want := digested{"git+https://github.com/keyturn/keyturn", map[string]string{"gitCommit": revision}}
	testkit.WantEqual(t, "the source", want, definition.ResolvedDependencies[0])
	if got, want := definition.ExternalParameters["platform"], "linux/"+subject.Platform.Architecture; got != want {
		t.Errorf("platform: got %q, want %q", got, want)
	}
	if got := definition.InternalParameters["-tags"]; got != "grpcnotrace" {
		t.Errorf("the settings of the build: got tags %q in %v", got, definition.InternalParameters)
	}
}
