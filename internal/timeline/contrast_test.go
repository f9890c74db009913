package timeline

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// palettes returns the colours of the style sheet for light, dark and paper, by variable.
func palettes(t *testing.T) map[string]map[string]string {
	t.Helper()
	found := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageCSS, -1)
	if len(found) != 3 {
		t.Fatalf("palettes in the style sheet: got %d, want 3", len(found))
	}
	all := make(map[string]map[string]string)
	for i, name := range []string{"light", "dark", "paper"} {
		all[name] = make(map[string]string)
		for _, variable := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(found[i][1], -1) {
			all[name][variable[1]] = variable[2]
		}
	}
	return all
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		channel := float64(n) / 255
		if channel <= 0.04045 {
			channel /= 12.92
		} else {
			channel = math.Pow((channel+0.055)/1.055, 2.4)
		}
		sum += weight * channel
	}
	return sum
}

func contrast(t *testing.T, one, other string) float64 {
	t.Helper()
	a, b := luminance(t, one), luminance(t, other)
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// TestColoursHaveTheContrastOfWCAG checks every colour against level AA: 4.5 for text, 3 for the shapes of the lanes.
func TestColoursHaveTheContrastOfWCAG(t *testing.T) {
	const text, shape = 4.5, 3.0
	type pair struct {
		fore, ground string
		least        float64
	}
	pairs := []pair{
		{"text", "ground", text},
		{"text", "raised", text},
		{"muted", "ground", text},
		{"muted", "raised", text},
		{"link", "ground", text},
		{"link", "raised", text},
		{"text", "fail-ground", text},
		{"text", "wait-ground", text},
	}
	for _, tone := range []string{"ok", "fail", "wait", "run", "skip", "seen"} {
		pairs = append(pairs, pair{tone, tone + "-ground", text}, pair{tone, "ground", shape}, pair{tone, "raised", shape}, pair{"mark", tone, shape})
	}
	// These are on the background of rows that failed or wait.
	for _, tone := range []string{"ok", "fail", "wait", "run", "skip", "seen"} {
		pairs = append(pairs, pair{tone, "fail-ground", shape}, pair{tone, "wait-ground", shape})
	}
	for name, palette := range palettes(t) {
		t.Run(name, func(t *testing.T) {
			for _, p := range pairs {
				if palette[p.fore] == "" || palette[p.ground] == "" {
					t.Errorf("%s on %s: the palette lacks one of them", p.fore, p.ground)
					continue
				}
				if got := contrast(t, palette[p.fore], palette[p.ground]); got < p.least {
					t.Errorf("contrast of %s on %s: got %.2f, want %.1f", p.fore, p.ground, got, p.least)
				}
			}
		})
	}
}

// TestPaperIsLight checks that the palette for print is that of the light screen.
func TestPaperIsLight(t *testing.T) {
	all := palettes(t)
	for name, colour := range all["light"] {
		if all["paper"][name] != colour {
			t.Errorf("--%s is %s on paper, want %s", name, all["paper"][name], colour)
		}
		if all["dark"][name] == "" {
			t.Errorf("--%s has no dark colour", name)
		}
	}
}

// TestNoColourIsOutsideThePalette checks the rest of the style sheet: another colour would be the same in the dark, and its
// contrast would not be checked.
func TestNoColourIsOutsideThePalette(t *testing.T) {
	rest := regexp.MustCompile(`(?s):root \{.*?\}`).ReplaceAllString(pageCSS, "")
	if found := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgb|hsl`).FindAllString(rest, -1); len(found) > 0 {
		t.Errorf("colours outside the palette: %s", strings.Join(found, ", "))
	}
}
