package timeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/keyturn/keyturn/internal/events"
)

// outline returns the elements of a page with the names of their attributes, in order.
func outline(t *testing.T, page []byte) []string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
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
	line := New(Options{Now: after(time.Hour)})
	for _, f := range facts {
		line.facts = append(line.facts, f.bounded())
	}
	var out bytes.Buffer
	if err := line.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// hostile is a rotation with the same texts in every field.
func hostile(text string, written, started int64) []fact {
	where := object{text, text, text}
	return []fact{
		{
			verb: events.VerbRotated, kind: events.KindOpenBao, object: object{text, "", text}, id: text, at: after(time.Second),
			written: time.Unix(written, 0), about: text, reason: text, writer: text,
		},
		{
			verb: events.VerbFailed, kind: events.KindRollout, object: where, id: text, causes: []string{text}, sources: []string{text},
			at: after(time.Minute), started: time.Unix(started, 0), reason: text, message: text,
		},
		{verb: events.VerbHeld, kind: events.KindRollout, object: object{text, text, "w/" + text}, causes: []string{text}, at: after(2 * time.Second), reason: text},
		{verb: events.VerbChanged, kind: events.KindSecret, object: object{text, text, "s/" + text}, id: "other " + text, at: after(time.Second), about: text},
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
	plain := make(map[int][]string)
	f.Fuzz(func(t *testing.T, text string, written, started int64) {
		facts := hostile(text, written, started)
		empty := 0
		if text == "" {
			empty = 1
		}
		got := outline(t, drawn(t, facts...))
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
		if plain[empty] == nil {
			plain[empty] = outline(t, drawn(t, hostile("plain words", written, started)...))
		}
		if !slices.Equal(plain[empty], got) {
			t.Fatalf("the elements of the page: got\n%s\nwant those of plain words\n%s", strings.Join(got, "\n"), strings.Join(plain[empty], "\n"))
		}
	})
}

// TestThePagePermitsNothingButItsStyle checks the policy against the style sheet as it is written.
func TestThePagePermitsNothingButItsStyle(t *testing.T) {
	out := drawn(t, hostile("web", began.Unix(), began.Unix()+2)...)
	root, err := html.Parse(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	var policy, style string
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "style" {
			style += n.FirstChild.Data
		}
		if n.Data == "meta" && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Val == "Content-Security-Policy" }) {
			policy = n.Attr[len(n.Attr)-1].Val
		}
	}
	sum := sha256.Sum256([]byte(style))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'"
	if policy != want {
		t.Errorf("policy: got %s\nwant %s", policy, want)
	}
}

// TestALinkToATraceIsOneOfTheWeb checks links to traces: the template comes from a flag, and the id is parsed from the event.
func TestALinkToATraceIsOneOfTheWeb(t *testing.T) {
	h := newHistory(t, Options{TraceURL: "javascript:alert('{traceID}')"})
	h.outcome("east", "deployment", "web", events.VerbHeld, time.Second, 0, h.rotated(0), "on-hold", "somebody has put the workload on hold")
	var out bytes.Buffer
	if err := h.line.Write(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "javascript:") {
		t.Errorf("the page has a link with a script:\n%s", out.String())
	}
}
