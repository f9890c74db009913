package notify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestConfigFillsInWhatIsLeftOut(t *testing.T) {
	got, err := parseConfig([]byte(`
sinks:
  - name: team
    type: slack
    url: https://hooks.example.com/services/T0/B0/x
  - name: audit
    type: webhook
    urlFile: /etc/keyturn/notify/audit
    verbs: [completed]
    namespaces: [shop]
    template: '{"text": "${message}"}'
    headers: [{name: Authorization, file: /etc/keyturn/notify/token}, {name: X-Team, value: shop}]
    rate: {perMinute: 6}
`))
	testkit.Must(t, err)
	want := []sinkConfig{
		{
			Name: "team", Type: "slack", URL: "https://hooks.example.com/services/T0/B0/x",
			Verbs: []events.Verb{events.VerbFailed, events.VerbHeld}, Rate: rateConfig{PerMinute: 60},
		},
		{
			Name: "audit", Type: "webhook", URLFile: "/etc/keyturn/notify/audit", Verbs: []events.Verb{events.VerbCompleted},
			Namespaces: []string{"shop"}, Template: `{"text": "${message}"}`, Rate: rateConfig{PerMinute: 6},
			Headers: []headerConfig{{Name: "Authorization", File: "/etc/keyturn/notify/token"}, {Name: "X-Team", Value: "shop"}},
		},
	}
	testkit.WantEqual(t, "sinks", want, got)
}

// secretPath is part of the addresses of these tests, and must appear in no error.
const secretPath = "hunter2"

func TestConfigNamesWhatIsWrong(t *testing.T) {
	sink := func(fields string) string {
		return "sinks: [{name: a, type: slack, url: 'https://x.example/" + secretPath + "', " + fields + "}]"
	}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"no sinks", "sinks: []", []string{"sinks: is empty, want at least one"}},
		{"a field that looks like a secret", "sinks: [{https://x.example/" + secretPath + ": a}]", []string{"invalid YAML, or an unknown field"}},
		{
			"everything at once, a line each", "sinks: [{name: A_b, type: irc}, {name: a, type: slack, urlFile: f, verbs: [broke]}, {name: a, type: slack, urlFile: f}]",
			[]string{
				`sinks[0].name: "A_b" is not a DNS label, want lower-case letters, digits and dashes, at most 63`,
				`sinks[0].type: "irc" is not known, want one of googlechat, slack, teams, webhook`,
				"sinks[0].url: is empty, want the address of the webhook, or urlFile",
				`sinks[1].verbs[0]: "broke" is not known, want one of started, completed, failed, held, skipped`,
				`sinks[2].name: "a" is used twice, want a name for each sink`,
			},
		},
		{
			"an address that cannot be parsed", "sinks: [{name: a, type: webhook, url: 'https://x.example/%zz" + secretPath + "'}]",
			[]string{"sinks[0].url: is not a URL, want one that begins with https:// or http://"},
		},
		{
			"a chat service in the clear", "sinks: [{name: a, type: teams, url: 'http://x.example/" + secretPath + "'}]",
			[]string{"sinks[0].url: has another scheme, want https://"},
		},
		{
			"a reason to wait that there is not", sink("heldReasons: [peer-failed, limit]"),
			[]string{
				`sinks[0].heldReasons[1]: "limit" is not known, want one of canary-first, files-pending, kind-not-served, limit-reached, lower-wave, ` +
					"on-hold, pause-period, peer-failed, rolled-recently, rolled-too-often, rollout-aborted, window-closed",
			},
		},
		{
			"a template with a field that is not known", sink("template: '${verbs}'"),
			[]string{"sinks[0].template: has ${verbs}, want one of cluster, id, kind, message, name, namespace, reason, revision, sources, text, time, traceId, verb, what, workload"},
		},
		{
			"headers that are none", "sinks: [{name: a, type: webhook, urlFile: f, headers: [{name: 'a b', value: c}, {name: a, value: c, file: f}, {name: a, value: \"c\\nd\"}]}]",
			[]string{
				`sinks[0].headers[0].name: "a b" is not the name of a header, want letters, digits and dashes`,
				"sinks[0].headers[1]: wants exactly one of value and file",
				"sinks[0].headers[2].value: has a control character, want one line of text",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseConfig([]byte(tt.text))
			if err == nil {
				t.Fatal("it is taken")
			}
			var want []string
			for _, line := range tt.want {
				want = append(want, "--notify-config: "+line)
			}
			testkit.WantEqual(t, "errors", want, strings.Split(err.Error(), "\n"))
			if strings.Contains(err.Error(), secretPath) {
				t.Error("the error quotes an address")
			}
		})
	}
}

func TestNewReadsTheFilesThatTheConfigurationNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	read := func(sink string) (*Notifier, error) {
		path := write("config", "sinks: [{name: a, type: webhook, "+sink+"}]")
		return New(Options{ConfigFile: path, Logger: new(testkit.Log).Logger(), Meter: newCounters().meter()})
	}
	good, token, lines := write("good", "https://x.example/"+secretPath+"\n"), write("token", "Bearer "+secretPath+"\n"), write("lines", secretPath+"\n"+secretPath)
	n, err := read("urlFile: " + good + ", headers: [{name: Authorization, file: " + token + "}]")
	testkit.Must(t, err)
	p := n.sinks[0].poster
	if p.address.String() != "https://x.example/"+secretPath || p.header.Get("Authorization") != "Bearer "+secretPath {
		t.Error("the address and the header are not those of the files")
	}
	missing := filepath.Join(dir, "missing")
	for sink, want := range map[string]string{
		"urlFile: " + missing: "urlFile: reading the file: open " + missing + ": no such file or directory",
		"urlFile: " + lines:   "urlFile: is not a URL, want one that begins with https:// or http://",
		"urlFile: " + good + ", headers: [{name: A, file: " + lines + "}]": "headers[0].file: the content of " + lines + " cannot be a header, want one line of text",
	} {
		if _, err := read(sink); err == nil || err.Error() != "--notify-config: sinks[0]."+want {
			t.Errorf("got %v, want sinks[0].%s", err, want)
		}
	}
}

func TestNewWithoutAConfigurationTellsNobody(t *testing.T) {
	n, err := New(Options{})
	testkit.Must(t, err)
	n.Run(t.Context(), nil)
	if _, err := New(Options{ConfigFile: filepath.Join(t.TempDir(), "missing")}); err == nil || !strings.HasPrefix(err.Error(), "--notify-config: open ") {
		t.Errorf("got %v for a file that is not there", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("sinks: [{name: a, type: slack, url: 'https://x.example/y', verbs: [failed], rate: {perMinute: 3}}]")
	f.Add("sinks:\n- {name: b, type: webhook, urlFile: f, template: '${text}', headers: [{name: A, value: b}]}")
	f.Add("sinks: [{url: !!int x}, {template: '${}'}, *a]")
	f.Add("sinks: 1e999")
	f.Fuzz(func(t *testing.T, text string) {
		sinks, err := parseConfig([]byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "--notify-config: ") {
					t.Errorf("a line of the error does not name the flag: %q", line)
				}
			}
			return
		}
		for _, s := range sinks {
			if s.Name == "" || len(s.Verbs) == 0 || s.Rate.PerMinute < 1 || (s.URL == "") == (s.URLFile == "") {
				t.Errorf("it is taken: %+v", s)
			}
		}
	})
}

// TestTheExamplesOfTheDocumentationWork parses each configuration in docs/how-to/notifications.md and renders a message with it.
func TestTheExamplesOfTheDocumentationWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/notifications.md")
	testkit.Must(t, err)
	shown := map[string]bool{}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		sinks, err := parseConfig([]byte(text))
		if err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		for _, s := range sinks {
			shown[s.Type] = true
			if body := made(t, s.Type, s.Template, outcome(events.VerbFailed, "shop", "r1")); !json.Valid([]byte(body)) {
				t.Errorf("the message of %s is no JSON: %s", s.Name, body)
			}
		}
	}
	for name := range formats {
		if !shown[name] {
			t.Errorf("there is no example of the type %s", name)
		}
	}
}
