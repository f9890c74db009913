package openbao

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMountsAreFoundInNamespaces(t *testing.T) {
	const root = `{"team-a/kv/":{"type":"kv","options":{"version":"2"}}}`
	tests := []struct {
		name, namespace, mount string
		want                   string // the full path, empty for an error
	}{
		{name: "with a slash in its path", mount: "team-a/kv", want: "team-a/kv/x"},
		{name: "in a namespace", mount: "team-a/secret", want: "team-a/secret/x"},
		{name: "in a namespace in a namespace", mount: "team-a/inner/secret", want: "team-a/inner/secret/x"},
		{name: "in the namespace of the store", namespace: "team-a", mount: "secret", want: "team-a/secret/x"},
		{name: "in a namespace in that of the store", namespace: "team-a", mount: "inner/secret", want: "team-a/inner/secret/x"},
		{name: "nowhere", mount: "team-b/secret"},
		{name: "of another engine", namespace: "team-a", mount: "pki"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(root)
			store.say("team-a@sys/internal/ui/mounts", 200, `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}},"pki/":{"type":"pki"}}}}`)
			store.say("team-a/inner@sys/internal/ui/mounts", 200, `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}}}}}`)
			store.say("team-b@sys/internal/ui/mounts", 403, `{"errors":["permission denied"]}`)
			const one = `{"data":{"key_info":{"x":{"current_version":1,"versions":{"1":{"created_time":"2026-11-20T11:03:17Z"}}}}}}`
			for _, at := range []string{"team-a/kv", "team-a@secret", "team-a/inner@secret"} {
				store.say(at+"/detailed-metadata?scan", 200, one)
			}
			config := "stores: [{name: main, address: 'http://bao', auth: {token: t}, namespace: '" + test.namespace + "', poll: {mounts: [" + test.mount + "]}}]"
			inBubble(t, config, store, nil, func(t *testing.T, r *rig) {
				after(time.Second)
				got := paths(r.seen())
				if test.want == "" {
					if log := r.log.String(); len(got) > 0 || !strings.Contains(log, test.mount) {
						t.Errorf("observed %v; log:\n%s", got, log)
					}
					return
				}
				if diff := cmp.Diff([]string{test.want}, got); diff != "" {
					t.Errorf("observed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestMountTable_CachesTheMountsOfANamespace(t *testing.T) {
	store := newFakeStore(kv2)
	mounts := newMountTable(clientOf(t, store))
	for range 3 {
		if in, err := mounts.find(t.Context(), "root", "secret/shop/db"); err != nil || in.path != "secret" || in.version != kvV2 {
			t.Fatalf("%+v, %v", in, err)
		}
		if _, err := mounts.find(t.Context(), "root", "other/db"); !errors.Is(err, errNoMount) {
			t.Fatalf("%v, want no mount", err)
		}
	}
	if got := store.times("sys/internal/ui/mounts"); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}
