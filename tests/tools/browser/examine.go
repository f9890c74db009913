package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// findings are what became of a page.
type findings struct {
	// Console are the lines that the page, or the browser about it, wrote to the console. Requests are all URLs that were asked for.
	Console  []string `json:"console"`
	Requests []string `json:"requests"`
	// Texts is how many texts were seen, and Faint those with too little contrast.
	Texts int      `json:"texts"`
	Faint []string `json:"faint"`
	// Spoken are the names and texts that a screen reader finds, in order.
	Spoken []string `json:"spoken"`

	mu sync.Mutex
}

// contrastScript returns what texts there are on the page, and those with less contrast than level AA of WCAG asks for.
//
//go:embed contrast.js
var contrastScript string

// flags keep Chromium from the network, and let it run as root.
var flags = []chromedp.ExecAllocatorOption{
	chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
}

func examine(parent context.Context, chromium, profile, url, out string) (*findings, error) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium), chromedp.UserDataDir(profile))
	allocator, stop := chromedp.NewExecAllocator(parent, append(options, flags...)...)
	defer stop()
	ctx, cancel := chromedp.NewContext(allocator)
	defer cancel()

	f := &findings{Console: []string{}, Requests: []string{}, Faint: []string{}}
	if err := f.listen(ctx); err != nil {
		return nil, err
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 1000), chromedp.Navigate(url)); err != nil {
		return nil, err
	}
	for _, look := range []struct{ name, media, scheme string }{{"light", "screen", "light"}, {"dark", "screen", "dark"}, {"paper", "print", "dark"}} {
		params := emulation.SetEmulatedMediaParams{
			Media: look.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}},
		}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, params); err != nil {
			return nil, err
		}
		if err := f.look(ctx, look.name, filepath.Join(out, look.name)); err != nil {
			return nil, fmt.Errorf("on %s: %w", look.name, err)
		}
	}
	if err := f.listenTo(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, nil
}

// listen notes what the page asks for and what is said about it.
func (f *findings) listen(ctx context.Context) error {
	err := chromedp.Listen(ctx, func(event any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			f.Requests = append(f.Requests, e.Request.URL)
		case *runtime.EventConsoleAPICalled:
			f.Console = append(f.Console, "console."+string(e.Type))
		case *runtime.EventExceptionThrown:
			f.Console = append(f.Console, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			f.Console = append(f.Console, string(e.Entry.Level)+": "+e.Entry.Text)
		}
	})
	_, network := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, logs := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, console := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	return errors.Join(err, network, logs, console)
}

// look measures the contrast of what is shown now, and makes a picture of it.
func (f *findings) look(ctx context.Context, name, path string) error {
	type contrast struct {
		Texts int      `json:"texts"`
		Faint []string `json:"faint"`
	}
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[contrast](contrastScript))
	if err != nil {
		return err
	}
	f.Texts += seen.Texts
	for _, text := range seen.Faint {
		f.Faint = append(f.Faint, name+": "+text)
	}
	picture, extension := chromedp.FullScreenshot(100), ".png"
	if name == "paper" {
		picture, extension = chromedp.PrintToPDF(), ".pdf"
	}
	content, err := chromedp.Run(ctx, picture)
	if err != nil {
		return err
	}
	return os.WriteFile(path+extension, content, 0o644)
}

// listenTo notes what a screen reader finds.
func (f *findings) listenTo(ctx context.Context) error {
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		return err
	}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Name == nil || node.Role == nil {
			continue
		}
		role, name := strings.Trim(string(node.Role.Value), `"`), strings.Trim(string(node.Name.Value), `"`)
		if name != "" && role != "InlineTextBox" {
			f.Spoken = append(f.Spoken, role+": "+name)
		}
	}
	return nil
}
