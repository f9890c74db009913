package build

import (
	"context"
	"fmt"
	"path/filepath"
)

// BrowserTool builds tests/tools/browser, which opens a page in a browser, and returns the path of the binary.
func BrowserTool(ctx context.Context) (string, error) {
	root, err := moduleDir(ctx, ".", modulePath)
	if err != nil {
		return "", fmt.Errorf("build the browser tool: %w", err)
	}
	dir, err := programsDir(root)
	if err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, "browser.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	binary := filepath.Join(dir, "browser")
	args := append(buildFlags(), "-mod=readonly", "-ldflags=-s -w")
	if err := goBuild(ctx, nil, filepath.Join(root, "tests", "tools", "browser"), binary, ".", args, "CGO_ENABLED=0"); err != nil {
		return "", fmt.Errorf("build the browser tool: %w", err)
	}
	return binary, nil
}
