package build

import (
	"io"
	"strings"
	"testing"
)

func TestAChoiceOfVersionsThatCannotBeMetIsRefused(t *testing.T) {
	for _, test := range []struct{ name, versions, assets, want string }{
		{"a typo", "oldset", "", "KEYTURN_TEST_VERSIONS=oldset: want oldest, or nothing for the newest"},
		{"other binaries, too", "oldest", "/assets", "KEYTURN_TEST_VERSIONS=oldest and KUBEBUILDER_ASSETS exclude each other: unset one of them"},
		{"a typo for a server that every release has", "1.30", "/assets", "KEYTURN_TEST_VERSIONS=1.30: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(versionsVariable, test.versions)
			t.Setenv(assetsVariable, test.assets)
			path, err := Binary(t.Context(), io.Discard, Etcd)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %q, %v, want %s", path, err, test.want)
			}
		})
	}
}
