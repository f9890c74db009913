package plugin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"time"
)

// pageHTML is the frame of a page, with [[name]] for each part. The page has no script, and its Content-Security-Policy permits only its own style
// sheet.
//
//go:embed timeline.html
var pageHTML string

//go:embed timeline.css
var pageCSS string

// markup is a part of a page. Events are not trusted: only add writes their texts, and escapes them. It does not use html/template, which calls
// methods by name, so that the linker would keep the whole Kubernetes API.
type markup struct{ strings.Builder }

// piece is HTML with {} for each text, within an element or the quotes of an attribute. Only constants are pieces.
type piece string

func (m *markup) add(p piece, texts ...string) {
	rest := string(p)
	for _, text := range texts {
		before, after, _ := strings.Cut(rest, "{}")
		m.WriteString(before)
		m.WriteString(html.EscapeString(text))
		rest = after
	}
	m.WriteString(rest)
}

// addIf adds a piece with a text, unless the text is empty.
func (m *markup) addIf(p piece, text string) {
	if text != "" {
		m.add(p, text)
	}
}

func (m *markup) sign(tone string) {
	m.add(`<svg width="20" height="20" aria-hidden="true" focusable="false"><use class="mark {}" href="#{}" x="10" y="10"/></svg>`, tone, tone)
}

func (m *markup) badge(tone, state string) {
	m.add(`<span class="badge {}">`, tone)
	m.sign(tone)
	m.add(`{}</span>`, state)
}

// part returns the markup that add writes.
func part(add func(m *markup)) string {
	var m markup
	add(&m)
	return m.String()
}

func (t *timeline) write(out io.Writer) error {
	p := newPage(t)
	sum := sha256.Sum256([]byte(pageCSS))
	parts := []string{
		"[[style]]", pageCSS, "[[hash]]", "sha256-" + base64.StdEncoding.EncodeToString(sum[:]),
		"[[title]]", part(p.title), "[[heading]]", part(p.heading), "[[made]]", stamp(t.now), "[[urgent]]", part(p.urgency),
		"[[rotations]]", part(p.rotations), "[[left]]", part(p.omissions),
	}
	for _, tone := range []string{"seen", "patch", "ok", "wait", "run", "fail", "skip"} {
		parts = append(parts, "[["+tone+"]]", part(func(m *markup) { m.sign(tone) }))
	}
	// The replacer works in one pass, so brackets in a text have no effect.
	if _, err := strings.NewReplacer(parts...).WriteString(out, pageHTML); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func (p *page) title(m *markup) {
	if len(p.urgent) > 0 {
		m.add("({}) ", strconv.Itoa(len(p.urgent)))
	}
	m.add("Rotations")
	m.addIf(" in {}", p.clusters)
}

func (p *page) heading(m *markup) {
	m.add("Rotations")
	m.addIf(" in <bdi>{}</bdi>", p.clusters)
}

func (p *page) urgency(m *markup) {
	if len(p.urgent) == 0 {
		m.add("<section class=\"urgent calm\" aria-labelledby=\"urgent\">\n<h3 id=\"urgent\">Nothing failed, and nothing waits.</h3>\n</section>\n")
		return
	}
	m.add("<section class=\"urgent\" aria-labelledby=\"urgent\">\n<h3 id=\"urgent\">Look at these first: {}</h3>\n<ul>\n",
		strconv.Itoa(len(p.urgent)))
	for _, r := range p.urgent {
		m.add("<li>")
		m.badge(r.state.String(), r.word)
		m.add(` <a href="#{}"><bdi class="object">{}</bdi></a> <span class="where"><bdi>{}</bdi></span>: <bdi>{}</bdi>`,
			r.id, r.object.name, r.object.where(), r.why)
		m.add("</li>\n")
	}
	m.add("</ul>\n</section>\n")
}

func (p *page) rotations(m *markup) {
	for _, v := range p.sections {
		v.write(m)
	}
	if len(p.sections) == 0 {
		m.add("<p>There is no rotation among these events.</p>\n")
	}
	if len(p.others) == 0 {
		return
	}
	m.add("<section class=\"rotation others\" aria-labelledby=\"others\">\n<div class=\"head\"><h2 id=\"others\">Changes that rolled nothing</h2>" +
		"<p class=\"muted\">No workload that asks for it reads these, or it was decided in silence: see <i>kubectl keyturn explain</i>.</p></div>\n" +
		"<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"others\">\n<table>\n<thead><tr><th scope=\"col\">Seen</th>" +
		"<th scope=\"col\">Source</th><th scope=\"col\">Where</th><th scope=\"col\">What</th></tr></thead>\n<tbody>\n")
	for _, f := range p.others {
		m.add("<tr><td>{}</td><th scope=\"row\"><bdi>{}</bdi></th><td><bdi>{}</bdi></td><td>{} <bdi>{}</bdi></td></tr>\n",
			stamp(f.at), f.object.name, f.object.where(), changeWords[f.verb], join(f.reason, f.about))
	}
	m.add("</tbody>\n</table>\n</div>\n</section>\n")
}

func (p *page) omissions(m *markup) {
	for _, sentence := range p.left {
		m.add("<p><b>Left out:</b> <bdi>{}</bdi></p>\n", sentence)
	}
}

func (v *section) write(m *markup) {
	m.add("<section class=\"rotation\" aria-labelledby=\"{}\">\n<div class=\"head\">\n", v.id)
	m.add("<h2 id=\"{}\"><bdi>{}</bdi> {} <span class=\"when\">{}</span></h2>\n<p>", v.id, v.object, v.word, stamp(v.scale.start))
	m.badge(v.worst.String(), overall[v.worst])
	m.add(" <b>{}</b>", v.counts)
	if v.counts != "" {
		m.add(", ")
	}
	m.add("{}; <bdi>{}</bdi>", v.took, v.where)
	m.addIf(", <bdi>{}</bdi>", v.about)
	m.add(".</p>\n")
	switch {
	case v.trace == "":
	case v.traceLink == "":
		m.add("<p class=\"muted\">Trace {}</p>\n", v.trace)
	default:
		m.add("<p class=\"muted\">Trace <a rel=\"noreferrer\" href=\"{}\">{}</a></p>\n", v.traceLink, v.trace)
	}
	m.add("</div>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Objects of the rotation\">\n<table>\n<thead><tr>\n" +
		"<th scope=\"col\" class=\"what\">Object</th><th scope=\"col\" class=\"state\">State</th>\n" +
		"<th scope=\"col\" class=\"axis\"><svg width=\"100%\" height=\"30\" role=\"img\" aria-label=\"Lane: the steps on an axis of time\">")
	ticks := v.scale.ticks()
	for i, d := range ticks {
		anchor := "middle"
		switch i {
		case 0:
			anchor = "start"
		case len(ticks) - 1:
			anchor = "end"
		}
		x := v.scale.percent(v.scale.start.Add(d))
		m.add(`<line x1="{}" x2="{}" y1="22" y2="30"/><text x="{}" y="16" text-anchor="{}">{}</text>`, x, x, x, anchor, since(d))
	}
	m.add("</svg></th>\n<th scope=\"col\" class=\"steps-head\">Steps</th>\n</tr></thead>\n<tbody>\n")
	several := v.rows[0].object.cluster != v.rows[len(v.rows)-1].object.cluster
	for i, row := range v.rows {
		isNext := i > 0 && v.rows[i-1].object.cluster != row.object.cluster
		if isNext {
			m.add("</tbody>\n<tbody>\n")
		}
		if isNext || several && i == 0 {
			m.addIf("<tr class=\"cluster\"><th scope=\"rowgroup\" colspan=\"4\">Cluster <bdi>{}</bdi></th></tr>\n", row.object.cluster)
		}
		row.write(m, &v.scale, ticks)
	}
	m.add("</tbody>\n</table>\n</div>\n</section>\n")
}

func (r *row) write(m *markup, s *scale, ticks []time.Duration) {
	tone := r.state.String()
	m.add("<tr id=\"{}\" class=\"{}\">\n<th scope=\"row\"><bdi class=\"object\">{}</bdi>", r.id, tone, r.object.name)
	m.addIf(`<br><span class="where"><bdi>{}</bdi></span>`, r.object.within())
	m.add("</th>\n<td>")
	m.badge(tone, r.word)
	m.addIf(`<div class="why"><bdi>{}</bdi></div>`, r.why)
	m.addIf(`<div class="why"><b>{}</b></div>`, r.since)
	m.add("</td>\n<td class=\"lane\"><svg height=\"30\" aria-hidden=\"true\" focusable=\"false\">")
	for _, d := range ticks {
		x := s.percent(s.start.Add(d))
		m.add(`<line class="grid" x1="{}" x2="{}" y1="-8" y2="400"/>`, x, x)
	}
	for _, b := range r.bars {
		y, height := "9", "12"
		if b.tone == seen.String() || b.tone == pending {
			y, height = "13", "4"
		}
		m.add(`<rect class="bar {}" x="{}" width="{}" y="{}" height="{}" rx="2"/>`, b.tone, s.percent(b.from), s.width(b.from, b.to), y, height)
	}
	for _, step := range r.steps {
		if step.tone != "" {
			m.add(`<use class="mark {}" href="#{}" x="{}" y="15"/>`, step.tone, step.tone, s.percent(step.at))
		}
	}
	m.add("</svg></td>\n<td><ol class=\"steps\">")
	for _, step := range r.steps {
		if step.text != "" {
			m.add("<li><b>{}</b> <bdi>{}</bdi></li>", since(step.at.Sub(s.start)), step.text)
		}
	}
	m.add("</ol></td>\n</tr>\n")
}
