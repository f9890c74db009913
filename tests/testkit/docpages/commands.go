// Package docpages reads the commands of pages of the documentation.
package docpages

import (
	"regexp"
	"strings"
)

// Command is a command of a page.
type Command struct {
	// Line is what a shell would get, without a comment at its end.
	Line string
	// Inline means that it is part of a sentence, and perhaps only the name of a command.
	Inline bool
}

// programs are those whose commands are looked for.
const programs = `actuator|bao|cmctl|cosign|curl|deploy/nats/render\.sh|docker|flux|git|go|helm|kind|kubectl|make|nats|nats-server|openssl|skopeo|` +
	`vault|watcher`

var (
	begins = regexp.MustCompile(`^(?:` + programs + `) `)
	inline = regexp.MustCompile("`((?:" + programs + ") [^`]+)`")
	// fence begins or ends a block of code: its second part is the language.
	fence   = regexp.MustCompile("^ *```([a-z]*)$")
	comment = regexp.MustCompile(` +# .*$`)
	// These begin and end a command of several lines.
	opens, closes = regexp.MustCompile(`^(?:for |\{ )`), regexp.MustCompile(`^(?:done|\})`)
)

// Commands returns the commands of a page in their order: the lines of its code that begin with the name of a program, each with its
// continuations, the loops and groups of such, and those in its sentences. A console block has commands only after its prompts, and one of
// another language has none.
func Commands(page string) []Command {
	var all []Command
	var block string
	var lines []string
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", "")) {
		line = strings.TrimRight(line, "\n")
		if match := fence.FindStringSubmatch(line); match != nil {
			fenced, block = !fenced, match[1]
			continue
		}
		switch code := strings.TrimSpace(line); {
		case fenced && block == "console":
			if command, found := strings.CutPrefix(code, "$ "); found {
				all = append(all, Command{Line: command})
			}
		case fenced && block != "" && block != "sh":
		case len(lines) > 0 || (fenced || strings.HasPrefix(line, "    ")) && opens.MatchString(code):
			if lines = append(lines, code); closes.MatchString(code) {
				all, lines = append(all, Command{Line: strings.Join(lines, "\n")}), nil
			}
		case (fenced || strings.HasPrefix(line, "    ")) && begins.MatchString(code):
			all = append(all, Command{Line: comment.ReplaceAllString(code, "")})
		case !fenced:
			for _, match := range inline.FindAllStringSubmatch(line, -1) {
				all = append(all, Command{Line: match[1], Inline: true})
			}
		}
	}
	return all
}
