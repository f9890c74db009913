package openbao

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMountsAreFoundInNamespaces(t *testing.T) {
	const root = `{"team-a/kv/":{"type":"kv","options":{"version":"2"}}}`
	for _, test := range []struct {
		name, namespace, mount string
		want                   string // the full path, empty for an error
	}{
		{name: "in a namespace", mount: "team-a/secret", want: "team-a/secret/x"},
		{name: "in a namespace in a namespace", mount: "team-a/inner/secret", want: "team-a/inner/secret/x"},
		{name: "in the namespace of the store", namespace: "team-a", mount: "secret", want: "team-a/secret/x"},
		{name: "nowhere", mount: "team-b/secret"},
	} {
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
				wantEqual(t, "observed", []string{test.want}, got)
			})
		})
	}
}

// Whoever may write ExternalSecrets decides how many paths are referenced.
func TestANamespaceThatIsRefusedIsAskedForOnceInAPoll(t *testing.T) {
	const mounts = "@sys/internal/ui/mounts"
	for _, test := range []struct {
		name, namespace string
		mount           string // of 50 references
		status          int
		refused         string
		result          string // of the polls: one that was refused most of the paths has failed
		reason          string
	}{
		{name: "a mount that the token does not see", namespace: "root", mount: "other", status: 404, refused: "other", result: "success", reason: "no-mount"},
		{
			name: "several such mounts with one segment before them", namespace: "root", mount: "other/%d", status: 403, refused: "other",
			result: "success", reason: "no-mount",
		},
		{name: "a namespace that is forbidden", namespace: "other", mount: "%d", status: 403, refused: "other", result: "failure", reason: "forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.do("team"+mounts, store.answers["sys/internal/ui/mounts"])
			store.say(test.refused+mounts, test.status, forbidden)
			references := []Reference{referenceTo(events.RootNamespace, "secret", "db")}
			for n := range 50 {
				mount := strings.ReplaceAll(test.mount, "%d", fmt.Sprint(n))
				references = append(references, referenceTo(test.namespace, mount, fmt.Sprintf("app-%d/db", n)))
			}
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z"))
			inBubble(t, pollReferenced, store, referring(references...), func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				polls := int(r.count(t, "keyturn.openbao.polls", test.result))
				if got := store.times(test.refused + mounts); polls < 9 || got < 9 || got > polls {
					t.Errorf("asked %d times in %d polls, want once in each that gets so far", got, polls)
				}
				if log := r.log.String(); !strings.Contains(log, "reason="+test.reason) {
					t.Errorf("%s is not logged:\n%.2000s", test.reason, log)
				}
				wantEqual(t, "observed", []string{"secret/db"}, paths(r.seen()))
			})
		})
	}
}

func TestMountTable_IsBounded(t *testing.T) {
	r := newRig(t, askOnly, func(o *Options) { o.Transport = newFakeStore(kv2) })
	mounts := newMountTable(r.feed.pipelines[0].client)
	_, err := mounts.find(t.Context(), events.RootNamespace, "secret/db")
	testkit.Must(t, err)
	for n := range 2 * maxNamespaces {
		if _, err := mounts.find(t.Context(), fmt.Sprintf("invented-%d", n), "secret/db"); !errors.Is(err, errNoMount) {
			t.Fatal(err)
		}
	}
	if _, kept := mounts.cached[events.RootNamespace]; !kept || len(mounts.cached) > maxNamespaces {
		t.Errorf("%d namespaces are cached, that of the store: %t; want %d at most", len(mounts.cached), kept, maxNamespaces)
	}
}
