// Package docpages reads the commands in the pages of the documentation.
package docpages

import (
	"regexp"
	"strings"
)

// Command is a command of a page.
type Command struct {
	// Line is the command line for a shell, without a comment at its end.
	Line string
	// Inline means that it is part of a sentence, and perhaps only the name of a command.
	Inline bool
}

// programs are the programs whose commands are recognized.
const programs = `actuator|bao|cmctl|cosign|curl|deploy/nats/render\.sh|docker|flux|git|go|helm|kind|kubectl|make|nats|nats-server|openssl|skopeo|` +
	`vault|watcher`

var (
	begins = regexp.MustCompile(`^(?:` + programs + `) `)
	inline = regexp.MustCompile("`((?:" + programs + ") [^`]+)`")
	// fence begins or ends a block of code. Its submatch is the language.
	fence   = regexp.MustCompile("^ *```([a-z]*)$")
	comment = regexp.MustCompile(` +# .*$`)
	// These begin and end a command with several lines.
	opens, closes = regexp.MustCompile(`^(?:for |\{ )`), regexp.MustCompile(`^(?:done|\})`)
)

// Commands returns the commands of a page in order: lines of code that begin with the name of a program, with their continuations, loops
// and groups of such lines, and commands within sentences. A console block has commands only after prompts, and a block in another
// language has none.
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
