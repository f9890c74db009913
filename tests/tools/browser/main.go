// Browser opens a page of HTML in a headless Chromium, and writes as JSON what an examiner of the page wants to know:
//
//	browser -chromium /usr/bin/chromium -page rotations.html -out pictures
//
// It opens the page on a light screen, on a dark one and on paper. The folder gets a picture of each: light.png, dark.png and paper.pdf.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// patience is how long Chromium may take for everything.
const patience = 2 * time.Minute

func run() error {
	chromium := flag.String("chromium", "", "path of Chromium")
	page := flag.String("page", "", "file with the page")
	out := flag.String("out", "", "folder for the pictures")
	flag.Parse()
	if *chromium == "" || *page == "" || *out == "" {
		return errors.New("-chromium, -page and -out: are required")
	}
	path, err := filepath.Abs(*page)
	if err != nil {
		return err
	}
	profile, err := os.MkdirTemp("", "keyturn-browser-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := examine(ctx, *chromium, profile, "file://"+path, *out)
	if err != nil {
		return fmt.Errorf("opening %s in %s: %w", path, *chromium, err)
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}
