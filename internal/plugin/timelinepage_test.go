package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/tests/testkit"
)

// outline returns the elements of a page with the names of their attributes, in order.
func outline(t *testing.T, page []byte) []string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	testkit.Must(t, err)
	var list []string
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			list = append(list, "a comment")
		}
		if n.Type != html.ElementNode {
			continue
		}
		element := n.Data
		for _, attribute := range n.Attr {
			element += " " + attribute.Key
		}
		list = append(list, element)
	}
	return list
}

// drawn draws facts whose texts have not passed the checks of an event.
func drawn(t *testing.T, facts ...fact) []byte {
	t.Helper()
	line := &timeline{now: after(time.Hour)}
	for _, f := range facts {
		line.facts = append(line.facts, f.bounded())
	}
	var out bytes.Buffer
	testkit.Must(t, line.write(&out))
	return out.Bytes()
}

// hostile is a rotation with the same texts in every field.
func hostile(text string, written, started int64) []fact {
	where := eventObject{text, text, text}
	return []fact{
		{
			verb: events.VerbRotated, kind: events.KindOpenBao, object: eventObject{text, "", text}, id: text, at: after(time.Second),
			written: time.Unix(written, 0), about: text, reason: text, writer: text,
		},
		{
			verb: events.VerbFailed, kind: events.KindRollout, object: where, id: text, causes: []string{text}, sources: []string{text},
			at: after(time.Minute), started: time.Unix(started, 0), reason: text, message: text,
		},
		{verb: events.VerbHeld, kind: events.KindRollout, object: eventObject{text, text, "w/" + text}, causes: []string{text}, at: after(2 * time.Second), reason: text},
		{verb: events.VerbChanged, kind: events.KindSecret, object: eventObject{text, text, "s/" + text}, id: "other " + text, at: after(time.Second), about: text},
	}
}

// FuzzPage checks that no text of an event creates an element or an attribute: the page has the same ones as a page of plain words.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		"web", "", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</style><script>", "{{.}}", "</svg></table></section>",
		"javascript:alert(1)", "]]><!--", "\x00\xff\u202e", "<a href=https://evil.example>", "' onload='", "&lt;script&gt;", strings.Repeat("a", 5000),
	} {
		f.Add(text, began.Unix(), began.Unix()+2)
	}
	f.Add("web", int64(-1<<62), int64(1<<62))
	var plain []string
	f.Fuzz(func(t *testing.T, text string, written, started int64) {
		got := outline(t, drawn(t, hostile(text, written, started)...))
		for _, element := range got {
			name, attributes, _ := strings.Cut(element, " ")
			if slices.Contains([]string{"script", "img", "iframe", "object", "embed", "form", "base"}, name) || element == "a comment" ||
				slices.ContainsFunc(strings.Fields(attributes), func(a string) bool { return strings.HasPrefix(a, "on") || a == "src" || a == "style" }) {
				t.Fatalf("the page has <%s>", element)
			}
		}
		if text == "" || written != began.Unix() || started != began.Unix()+2 {
			return // Different steps give different lanes.
		}
		if plain == nil {
			plain = outline(t, drawn(t, hostile("plain words", written, started)...))
		}
		if !slices.Equal(plain, got) {
			t.Fatalf("the elements of the page: got\n%s\nwant those of plain words\n%s", strings.Join(got, "\n"), strings.Join(plain, "\n"))
		}
	})
}

// TestThePagePermitsNothingButItsStyle checks the policy against the style sheet as it is written.
func TestThePagePermitsNothingButItsStyle(t *testing.T) {
	content := string(drawn(t, hostile("web", began.Unix(), began.Unix()+2)...))
	_, style, _ := strings.Cut(content, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-` + base64.StdEncoding.EncodeToString(sum[:]) +
		`'; img-src data:; base-uri 'none'; form-action 'none'">`
	if style == "" || !strings.Contains(html.UnescapeString(content), want) {
		t.Errorf("the page lacks %s:\n%s", want, content)
	}
}

// TestALinkToATraceIsOneOfTheWeb checks links to traces: the template comes from a flag, and the id is parsed from the event.
func TestALinkToATraceIsOneOfTheWeb(t *testing.T) {
	h := newHistory(t, inspect.HistoryOptions{TraceURL: "javascript:alert('{traceID}')"})
	h.outcome("east", "deployment", "web", events.VerbHeld, time.Second, 0, h.rotated(0), "on-hold", "somebody has put the workload on hold")
	var out bytes.Buffer
	testkit.Must(t, h.line.write(&out))
	if strings.Contains(out.String(), "javascript:") {
		t.Errorf("the page has a link with a script:\n%s", out.String())
	}
}

func TestGoldenPage(t *testing.T) {
	h := newHistory(t, inspect.HistoryOptions{TraceURL: "https://traces.example.com/trace/{traceID}"})
	h.night()
	var out bytes.Buffer
	testkit.Must(t, h.line.write(&out))
	testkit.Golden(t, "testdata/night.html", out.Bytes())
}

// palettes returns the colours of the style sheet for light, dark and paper, by variable.
func palettes(t *testing.T) map[string]map[string]string {
	t.Helper()
	found := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageCSS, -1)
	if len(found) != 3 {
		t.Fatalf("palettes in the style sheet: got %d, want 3", len(found))
	}
	all := make(map[string]map[string]string)
	for i, name := range []string{"light", "dark", "paper"} {
		all[name] = make(map[string]string)
		for _, variable := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(found[i][1], -1) {
			all[name][variable[1]] = variable[2]
		}
	}
	return all
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		testkit.Must(t, err)
		channel := float64(n) / 255
		if channel <= 0.04045 {
			channel /= 12.92
		} else {
			channel = math.Pow((channel+0.055)/1.055, 2.4)
		}
		sum += weight * channel
	}
	return sum
}

// TestColoursHaveTheContrastOfWCAG checks every colour against level AA: 4.5 for text, 3 for the shapes of the lanes.
func TestColoursHaveTheContrastOfWCAG(t *testing.T) {
	const text, shape = 4.5, 3.0
	type pair struct {
		fore, ground string
		least        float64
	}
	pairs := []pair{{"text", "fail-ground", text}, {"text", "wait-ground", text}}
	for _, fore := range []string{"text", "muted", "link"} {
		pairs = append(pairs, pair{fore, "ground", text}, pair{fore, "raised", text})
	}
	for _, tone := range []string{"ok", "fail", "wait", "run", "skip", "seen"} {
		pairs = append(pairs, pair{tone, tone + "-ground", text}, pair{"mark", tone, shape})
		for _, ground := range []string{"ground", "raised", "fail-ground", "wait-ground"} { // The last two are those of rows that failed or wait.
			pairs = append(pairs, pair{tone, ground, shape})
		}
	}
	for name, palette := range palettes(t) {
		for _, p := range pairs {
			if palette[p.fore] == "" || palette[p.ground] == "" {
				t.Errorf("%s on %s: the palette %s lacks one of them", p.fore, p.ground, name)
				continue
			}
			a, b := luminance(t, palette[p.fore]), luminance(t, palette[p.ground])
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < p.least {
				t.Errorf("%s: contrast of %s on %s: got %.2f, want %.1f", name, p.fore, p.ground, got, p.least)
			}
		}
	}
}

// TestNoColourIsOutsideThePalette checks the rest of the style sheet: another colour would be the same in the dark, and its
// contrast would not be checked.
func TestNoColourIsOutsideThePalette(t *testing.T) {
	rest := regexp.MustCompile(`(?s):root \{.*?\}`).ReplaceAllString(pageCSS, "")
	if found := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgb|hsl`).FindAllString(rest, -1); len(found) > 0 {
		t.Errorf("colours outside the palette: %s", strings.Join(found, ", "))
	}
}
