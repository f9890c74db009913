package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// PageFindings are what Chromium reports about a page on a light screen, on a dark one and on paper. tests/tools/browser explains the
// fields.
type PageFindings struct {
	Console, Requests, Faint, Spoken []string
	Texts                            int
}

// OpenPage opens a file with a page of HTML in a headless Chromium, and writes pictures of it into a folder: light.png, dark.png and paper.pdf.
// The error wraps build.ErrNoChromium if there is no Chromium.
func OpenPage(ctx context.Context, log io.Writer, page, out string) (PageFindings, error) {
	var found PageFindings
	chromium, err := build.Chromium(ctx, log)
	if err != nil {
		return found, err
	}
	tool, err := build.BrowserTool(ctx)
	if err != nil {
		return found, err
	}
	cmd := exec.CommandContext(ctx, tool, "-chromium", chromium.Path, "-page", page, "-out", out)
	cmd.Env = append(os.Environ(), chromium.Env...)
	content, err := process.Capture(cmd)
	if err != nil {
		return found, fmt.Errorf("open %s: %w", page, err)
	}
	if err := json.Unmarshal(content, &found); err != nil {
		return found, fmt.Errorf("open %s: %w", page, err)
	}
	return found, nil
}
