package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/internal/plugin"
	"github.com/keyturn/keyturn/tests/testkit/flagpages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestArgumentsAreCompletedUnderTheNameThatKubectlAsksFor(t *testing.T) {
	for _, tt := range []struct {
		name  string
		words []string
		want  []string
	}{
		{"the plugin", []string{"/bin/kubectl-keyturn", "history", "-n", "shop"}, []string{"history", "-n", "shop"}},
		{"its completion", []string{"/bin/kubectl_complete-keyturn", "his"}, []string{"__complete", "his"}},
		{"its completion on Windows", []string{"kubectl_complete-keyturn.exe", "his"}, []string{"__complete", "his"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, arguments(tt.words)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReferenceOfTheFlagsIsWhatTheCodeSays(t *testing.T) {
	flagpages.Check(t, "kubectl-keyturn", "The flags of kubectl keyturn", "", plugin.New(version).Command())
}
