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

// The style sheet is a template without actions, which html/template writes as it is. The hash of it is what the page permits.
var (
	pageTemplate = template.Must(template.Must(template.New("page").Parse(pageHTML)).New("style").Parse(pageCSS))
	styleSum     = sha256.Sum256([]byte(pageCSS))
	styleHash    = "sha256-" + base64.StdEncoding.EncodeToString(styleSum[:])
)

// writePage writes a page of HTML.
func writePage(out io.Writer, p *page) error {
	if err := pageTemplate.ExecuteTemplate(out, "page", p); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
