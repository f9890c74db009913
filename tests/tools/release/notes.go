package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// relative is the beginning of a link to a file of the repository.
var relative = regexp.MustCompile(`\]\(([\w.]+[/#\w.-]*\))`)

// notes returns the section of the changelog about the version, without its heading. Links to pages of the repository lead to those of the version.
func (r release) notes() ([]byte, error) {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	section := regexp.MustCompile(`(?s)\n## \[?` + regexp.QuoteMeta(r.bare()) + `\]?(?: [^\n]*)?\n+(.+?\n)\n*(?:## |$)`)
	found := section.FindSubmatch(changelog)
	if found == nil {
		return nil, fmt.Errorf("CHANGELOG.md: has no section %q with the notes of the release", "## "+r.bare())
	}
	return relative.ReplaceAll(found[1], []byte("]("+source+"/blob/"+r.version+"/$1")), nil
}
