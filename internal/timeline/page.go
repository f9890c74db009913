package timeline

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// writePage writes a page of HTML. The page permits its own style sheet, by its hash, and no other.
func writePage(out io.Writer, p *page) error {
	sum := sha256.Sum256([]byte(pageCSS))
	p.Style, p.StyleHash = template.CSS(pageCSS), "sha256-"+base64.StdEncoding.EncodeToString(sum[:])
	parsed, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("parsing the page: %w", err)
	}
	if err := parsed.Execute(out, p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
