package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/docpages"
)

// The values that somebody has set for Reloader may pin its image, which is not to be taken for a version of Keyturn's.
func TestTheMigrationTakesNoVersionOfReloadersImage(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/how-to/migrate-from-reloader.md")
	commands := docpages.Commands(page)
	at := slices.IndexFunc(commands, func(c docpages.Command) bool { return strings.HasPrefix(c.Line, "helm install keyturn ") })
	if at < 0 {
		t.Fatal("the page does not install Keyturn")
	}
	args := []string{"template", "keyturn", folder}
	fields := strings.Fields(commands[at].Line)
	for i, field := range fields {
		if strings.HasPrefix(field, "--set") {
			args = append(args, field, fields[i+1])
		}
	}
	for name, image := range map[string]string{
		"a tag": "{tag: v1.4.21}", "a digest": "{tag: v1.4.21, digest: sha256:" + digest + "}",
		"a mirror": "{repository: registry.example.com/stakater/reloader, tag: v1.4.21, digest: sha256:" + digest + "}",
	} {
		out, err := helm(t, "{image: "+image+", reloader: {logLevel: info}}", args...)
		if err != nil || strings.Contains(out, "v1.4.21") || strings.Contains(out, digest) || !strings.Contains(out, "image: registry.example.com/keyturn:v") {
			t.Errorf("with %s of Reloader's image: %v\n%s", name, err, out)
		}
	}
}
