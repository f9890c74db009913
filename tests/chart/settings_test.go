package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// heading begins a section of a page.
var heading = regexp.MustCompile(`\n##+ `)

// blocksOfPage are the blocks of YAML in a section of a page in docs/how-to, without those of its subsections.
func blocksOfPage(t *testing.T, name, title string) []string {
	t.Helper()
	page := testkit.ReadFile(t, "../../docs/how-to/"+name)
	_, section, _ := strings.Cut(page, "\n"+title+"\n")
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(heading.Split(section, 2)[0], -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// Since 5.1 kustomize runs the generators of an overlay before those of its components.
func TestTheExampleWithANATSOfYourOwnNamesThisNATS(t *testing.T) {
	settings := objects(t, built(t, "../../examples/external-nats"))["ConfigMap keyturn-system/keyturn"]
	want := map[string]any{
		"KEYTURN_CLUSTER": "prod-eu", "KEYTURN_NATS_URL": "tls://nats.example.com:4222", "KEYTURN_NATS_CA": "/var/run/secrets/keyturn/nats/ca.crt",
	}
	testkit.WantEqual(t, "settings", any(want), settings["data"])
}

func TestThePatchOfThePageReplacesWhatComponentsSet(t *testing.T) {
	blocks := blocksOfPage(t, "install.md", "## Kustomize")
	if len(blocks) != 2 {
		t.Fatalf("the section has %d blocks, want an overlay and a patch", len(blocks))
	}
	dir := overlay(t, blocks[1], "base", "secret-stores", "secret-provider-classes")
	settings := objects(t, built(t, dir))["ConfigMap keyturn-system/keyturn"]
	const want = "secret,configmap,externalsecret,certificate,secretproviderclass"
	if got := settings.at("data", "KEYTURN_SOURCES"); got != want {
		t.Errorf("sources: got %v, want %s", got, want)
	}
}
