package timeline

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
)

// signs has the drawings that the page uses. Their ids are the tones.
//
//go:embed signs.svg
var signs string

//go:embed page.css
var pageCSS string

// styleHash is the hash of the style sheet as it is written. The page permits only this one.
var (
	styleSum  = sha256.Sum256([]byte(pageCSS))
	styleHash = "sha256-" + base64.StdEncoding.EncodeToString(styleSum[:])
)

// writePage writes a page of HTML.
func writePage(out io.Writer, p *page) error {
	buffer := bufio.NewWriter(out)
	m := &markup{out: buffer}
	m.head(p)
	m.summary(p)
	m.write("<main>")
	for i := range p.Rotations {
		m.rotation(&p.Rotations[i])
	}
	if len(p.Rotations) == 0 {
		m.write("\n<p>There is no rotation among these events.</p>")
	}
	m.others(p.Others)
	m.write("\n</main>\n")
	m.foot(p.Left)
	if m.err == nil {
		m.err = buffer.Flush()
	}
	if m.err != nil {
		return fmt.Errorf("writing the page: %w", m.err)
	}
	return nil
}

func (m *markup) head(p *page) {
	m.write(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>`, p.StyleHash)
	if urgent := len(p.Urgent); urgent > 0 {
		m.write("({}) ", strconv.Itoa(urgent))
	}
	m.write("Rotations")
	m.writeIf(p.Clusters, " in {}")
	m.write("</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>")
	m.write(raw(pageCSS))
	m.write("</style>\n</head>\n<body>\n")
	m.write(raw(signs))
}

// summary writes what somebody should look at first, and what the signs mean.
func (m *markup) summary(p *page) {
	m.write("<header>\n<h1>Rotations")
	m.writeIf(p.Clusters, " in <bdi>{}</bdi>")
	m.write(`</h1>
<p class="muted">Made {}. Times with + count from the write of the source, on a logarithmic axis: short steps are drawn wider.</p>
`, p.Made)
	if len(p.Urgent) == 0 {
		m.write(`<section class="urgent calm" aria-labelledby="urgent">
<h3 id="urgent">Nothing failed, and nothing waits.</h3>`)
	} else {
		m.write(`<section class="urgent" aria-labelledby="urgent">
<h3 id="urgent">Look at these first: {}</h3>
<ul>`, strconv.Itoa(len(p.Urgent)))
		for _, u := range p.Urgent {
			m.write("\n<li>")
			m.badge(u.Tone, u.State)
			m.write(` <a href="#{}"><bdi class="object">{}</bdi></a> <span class="where"><bdi>{}</bdi></span>: <bdi>{}</bdi></li>`,
				u.Row, u.Object, u.Where, u.Why)
		}
		m.write("\n</ul>")
	}
	m.write("\n</section>\n<ul class=\"legend\" aria-hidden=\"true\">")
	for _, line := range legend {
		m.write("\n<li>")
		m.sign(line.tone)
		m.write(" {}</li>", line.text)
	}
	m.write("\n</ul>\n</header>\n")
}

// legend says what the signs mean.
var legend = []struct{ tone, text string }{
	{"seen", "a source changed"},
	{"patch", "patched: pods are being replaced"},
	{"ok", "last pod ready"},
	{"wait", "waits"},
	{"run", "still rolling"},
	{"fail", "failed"},
	{"skip", "not rolled"},
}

// sign writes the sign of a tone.
func (m *markup) sign(tone string) {
	m.write(`<svg width="20" height="20" aria-hidden="true" focusable="false"><use class="mark {}" href="#{}" x="10" y="10"/></svg>`, tone, tone)
}

// badge writes a state with the sign of its tone.
func (m *markup) badge(tone, state string) {
	m.write(`<span class="badge {}">`, tone)
	m.sign(tone)
	m.write("{}</span>", state)
}

// others writes the changes that rolled nothing.
func (m *markup) others(others []otherView) {
	if len(others) == 0 {
		return
	}
	m.write(`
<section class="rotation others" aria-labelledby="others">
<div class="head"><h2 id="others">Changes that rolled nothing</h2><p class="muted">` +
		`No workload that asks for it reads these, or it was decided in silence: see <i>kubectl keyturn explain</i>.</p></div>
<div class="scroll" role="region" tabindex="0" aria-labelledby="others">
<table>
<thead><tr><th scope="col">Seen</th><th scope="col">Source</th><th scope="col">Where</th><th scope="col">What</th></tr></thead>
<tbody>`)
	for _, o := range others {
		m.write("\n<tr><td>{}</td><th scope=\"row\"><bdi>{}</bdi></th><td><bdi>{}</bdi></td><td>{} <bdi>{}</bdi></td></tr>",
			o.At, o.Object, o.Where, o.Word, o.About)
	}
	m.write("\n</tbody>\n</table>\n</div>\n</section>")
}

// foot writes what the page leaves out.
func (m *markup) foot(left []string) {
	m.write("<footer>")
	for _, sentence := range left {
		m.write("\n<p><b>Left out:</b> <bdi>{}</bdi></p>", sentence)
	}
	m.write(`
<p class="muted">The API server notes writes to the second: <i>written</i> of a Kubernetes object is up to a second early. ` +
		`Made by <i>kubectl keyturn timeline</i> from the stream HISTORY.</p>
</footer>
</body>
</html>
`)
}
