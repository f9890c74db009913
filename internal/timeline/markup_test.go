package timeline

import (
	"errors"
	"strings"
	"testing"
)

func TestMarkupEscapesWhatGoesIntoASlot(t *testing.T) {
	for _, tt := range []struct {
		name  string
		code  raw
		texts []string
		want  string
	}{
		{"HTML without a slot is written as it is", `<b class="x">&amp;</b>`, nil, `<b class="x">&amp;</b>`},
		{"plain words stay", "<b>{}</b>", []string{"plain words"}, "<b>plain words</b>"},
		{"an element becomes text", "<b>{}</b>", []string{"<i>&"}, "<b>&lt;i&gt;&amp;</b>"},
		{"no quote ends an attribute", `<b id="{}">`, []string{`"'`}, `<b id="&#34;&#39;">`},
		{"a slot in a text is text", "<b>{}</b>{}", []string{"{}", "next"}, "<b>{}</b>next"},
		{"a NUL is replaced", "{}", []string{"a\x00b"}, "a\ufffdb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			m := markup{out: &out}
			m.write(tt.code, tt.texts...)
			if out.String() != tt.want || m.err != nil {
				t.Errorf("got %q and error %v, want %q", out.String(), m.err, tt.want)
			}
		})
	}
}

func TestMarkupNeedsAsManyTextsAsSlots(t *testing.T) {
	for _, tt := range []struct {
		name  string
		code  raw
		texts []string
	}{
		{"a text too many", `<b id="{}"`, []string{"a", "onclick=b"}},
		{"a text too few", "<b>{}</b>", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			m := markup{out: &out}
			if m.write(tt.code, tt.texts...); m.err == nil || out.Len() > 0 {
				t.Errorf("wrote %q and got error %v, want nothing and an error", out.String(), m.err)
			}
		})
	}
}

// brokenWriter fails from the first write on.
type brokenWriter struct{ writes int }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("disk full")
}

func TestMarkupEndsAtTheFirstError(t *testing.T) {
	var out brokenWriter
	m := markup{out: &out}
	m.write("<b>{}</b>", "text")
	m.write("<i>")
	if m.err == nil || out.writes != 1 {
		t.Errorf("%d writes and error %v, want one and an error", out.writes, m.err)
	}
}
