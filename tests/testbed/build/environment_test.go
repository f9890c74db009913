package build

import (
	"io"
	"strings"
	"testing"
)

func TestAChoiceOfKubernetesThatCannotBeMetIsRefused(t *testing.T) {
	for _, test := range []struct{ name, kubernetes, assets, want string }{
		{"a typo", "oldset", "", "KEYTURN_TEST_KUBERNETES=oldset: want oldest, or nothing for the newest"},
		{"other binaries, too", "oldest", "/assets", "KEYTURN_TEST_KUBERNETES=oldest and KUBEBUILDER_ASSETS exclude each other: unset one of them"},
		{"a typo for a server that every release has", "1.30", "/assets", "KEYTURN_TEST_KUBERNETES=1.30: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(kubernetesVariable, test.kubernetes)
			t.Setenv(assetsVariable, test.assets)
			path, err := Binary(t.Context(), io.Discard, Etcd)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %q, %v, want %s", path, err, test.want)
			}
		})
	}
}
