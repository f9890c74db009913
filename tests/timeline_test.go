package tests

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// pictures names a folder for the pictures of the page, for whoever wants to look at them. Empty: they are thrown away.
const pictures = "TIMELINE_PICTURES"

// drawn makes a rotation that rolls one of two clusters and waits in the other, and one that the store's readers cannot sync. Then it opens the page
// of the history in Chromium.
func drawn(east, west *storeRig, url string) {
	east.Helper()
	west.annotateDeployment("web", "keyturn.dev/hold", "change freeze")
	east.put("shop/db", "three")
	for _, s := range []*storeRig{east, west} {
		s.awaitContent("db", "three")
	}
	east.awaitGeneration("web", 3)
	// The key that the ExternalSecrets read is gone.
	if _, err := east.store.Client().KVv2("secret").Put(east.Context(), "shop/db", map[string]any{"pasword": "four"}); err != nil {
		east.Fatal(err)
	}
	draw := east.command("timeline", "--all-clusters", "--all-namespaces", "--since", "", "--trace-url", url+"/trace/{traceID}")
	var page string
	east.eventually("the page has the failures, and the wait", func(context.Context) bool {
		got := draw.run(east.T)
		if got.code != 0 {
			east.Fatalf("kubectl keyturn timeline: exit code %d:\n%s", got.code, got.stderr)
		}
		page = got.stdout
		return strings.Contains(page, "Look at these first: 3<") && strings.Count(page, "SecretSyncedError") >= 2 &&
			strings.Contains(page, "on-hold: somebody") && strings.Contains(page, "All ready<")
	})
	dir := os.Getenv(pictures)
	if dir == "" {
		dir = east.TempDir()
	}
	path := filepath.Join(dir, "rotations.html")
	testkit.Must(east, os.WriteFile(path, []byte(page), 0o600))
	found, err := testbed.OpenPage(east.Context(), os.Stderr, path, dir)
	switch {
	case errors.Is(err, build.ErrNoChromium):
		east.Logf("NOT TESTED: the page of a rotation was not opened: %v", err)
		return
	case err != nil:
		east.Fatal(err)
	}
	if len(found.Console) > 0 {
		east.Errorf("the console says\n%s", strings.Join(found.Console, "\n"))
	}
	if want := []string{"file://" + path}; !slices.Equal(found.Requests, want) {
		east.Errorf("requests: got %q, want %q", found.Requests, want)
	}
	if len(found.Faint) > 0 || found.Texts < 100 {
		east.Errorf("of %d texts are too faint:\n%s", found.Texts, strings.Join(found.Faint, "\n"))
	}
	spoken := strings.Join(found.Spoken, "\n")
	for _, want := range []string{
		"heading: Look at these first: 3", "heading: openbao/bao/root/secret/shop/db rotated", "rowheader: deployment/web namespace " + east.namespace,
		"rowheader: externalsecret/db namespace " + west.namespace, "rowheader: Cluster shared", "cell: Waits on-hold: ", "link: deployment/web",
	} {
		if !strings.Contains(spoken, want) {
			east.Errorf("a screen reader does not find %q:\n%s", want, spoken)
		}
	}
	east.Logf("%d texts have contrast; the page asked for nothing but itself", found.Texts)
}
