package reloader

import (
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/program"
)

// note adds a note about a setting that was accepted, but has another effect than it says.
func note(r *program.Reloader, setting, effect string) {
	r.Notes = append(r.Notes, program.Note{Setting: setting, Text: effect})
}

// isOn reports whether a flag is on that Reloader reads as text. As there, only "true" turns it on.
func isOn(r *program.Reloader, flag, text string) bool {
	switch text {
	case "true":
		return true
	case "false", "":
	default:
		note(r, flag, fmt.Sprintf("off, because only true turns it on, not %q", text))
	}
	return false
}

// noteColons adds a note for each item of a selector with several colons, of which Reloader reads only a part.
func noteColons(r *program.Reloader, flag string, items []string) {
	for _, item := range items {
		if strings.Count(item, ":") > 1 {
			note(r, flag, fmt.Sprintf("every value of %q counts, of which Reloader reads only the first", item))
		}
	}
}

// noteArguments adds a note for each argument that is no flag. Reloader ignores them, such as the value after a flag that is on or off.
func noteArguments(r *program.Reloader, arguments []string) {
	for _, argument := range arguments {
		note(r, fmt.Sprintf("argument %.100q", argument), "none, as in Reloader; a flag that is on or off takes its value as --flag=value")
	}
}
