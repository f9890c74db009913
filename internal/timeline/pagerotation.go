package timeline

import (
	"net/url"
	"slices"
)

// rotation writes a rotation: what changed, and a table with a lane for each object.
func (m *markup) rotation(r *rotationView) {
	m.rotationHead(r)
	m.write(`
<div class="scroll" role="region" tabindex="0" aria-label="Objects of the rotation">
<table>
<thead><tr>
<th scope="col" class="what">Object</th><th scope="col" class="state">State</th>
<th scope="col" class="axis"><svg width="100%" height="30" role="img" aria-label="Lane: the steps on an axis of time">`)
	for _, t := range r.Ticks {
		m.write(`<line x1="{}" x2="{}" y1="22" y2="30"/><text x="{}" y="16" text-anchor="{}">{}</text>`, t.X, t.X, t.X, t.Anchor, t.Text)
	}
	m.write("</svg></th>\n<th scope=\"col\" class=\"steps-head\">Steps</th>\n</tr></thead>")
	for _, group := range r.Groups {
		m.write("\n<tbody>")
		m.writeIf(group.Title, "\n<tr class=\"cluster\"><th scope=\"rowgroup\" colspan=\"4\">Cluster <bdi>{}</bdi></th></tr>")
		for i := range group.Rows {
			m.row(&group.Rows[i], r.Ticks)
		}
		m.write("\n</tbody>")
	}
	m.write("\n</table>\n</div>\n</section>")
}

func (m *markup) rotationHead(r *rotationView) {
	m.write(`
<section class="rotation" aria-labelledby="{}">
<div class="head">
<h2 id="{}"><bdi>{}</bdi> {} <span class="when">{}</span></h2>
<p>`, r.ID, r.ID, r.Object, r.Word, r.At)
	m.badge(r.Tone, r.State)
	m.write(" <b>{}</b>", r.Counts)
	if r.Counts != "" {
		m.write(", ")
	}
	m.write("{}; <bdi>{}</bdi>", r.Took, r.Where)
	m.writeIf(r.About, ", <bdi>{}</bdi>")
	m.write(".</p>")
	switch {
	case r.Trace == "":
	case isOfWeb(r.TraceLink):
		m.write("\n<p class=\"muted\">Trace <a rel=\"noreferrer\" href=\"{}\">{}</a></p>", r.TraceLink, r.Trace)
	default:
		m.write("\n<p class=\"muted\">Trace {}</p>", r.Trace)
	}
	m.write("\n</div>")
}

// isOfWeb reports whether a link leads to a web page, and not to a script.
func isOfWeb(link string) bool {
	parsed, err := url.Parse(link)
	return err == nil && slices.Contains([]string{"http", "https"}, parsed.Scheme)
}

// row writes an object of a rotation with its lane.
func (m *markup) row(r *rowView, ticks []tickView) {
	m.write("\n<tr id=\"{}\" class=\"{}\">\n<th scope=\"row\"><bdi class=\"object\">{}</bdi>", r.ID, r.Tone, r.Object)
	m.writeIf(r.Where, `<br><span class="where"><bdi>{}</bdi></span>`)
	m.write("</th>\n<td>")
	m.badge(r.Tone, r.State)
	m.writeIf(r.Why, `<div class="why"><bdi>{}</bdi></div>`)
	m.writeIf(r.Since, `<div class="why"><b>{}</b></div>`)
	m.write("</td>\n<td class=\"lane\"><svg height=\"30\" aria-hidden=\"true\" focusable=\"false\">")
	for _, t := range ticks {
		m.write(`<line class="grid" x1="{}" x2="{}" y1="-8" y2="400"/>`, t.X, t.X)
	}
	for _, b := range r.Bars {
		m.write(`<rect class="bar {}" x="{}" width="{}" y="{}" height="{}" rx="2"/>`, b.Tone, b.X, b.Width, b.Y, b.Height)
	}
	for _, mark := range r.Marks {
		m.write(`<use class="mark {}" href="#{}" x="{}" y="15"/>`, mark.Tone, mark.Tone, mark.X)
	}
	m.write("</svg></td>\n<td><ol class=\"steps\">")
	for _, p := range r.Phases {
		m.write("<li><b>{}</b> <bdi>{}</bdi></li>", p.After, p.Text)
	}
	m.write("</ol></td>\n</tr>")
}
