package expression

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestAnExpressionIsParsedUnlessItIsTooLarge(t *testing.T) {
	tests := []struct {
		name, text string
		left       int
		err        string
	}{
		{name: "a name", text: "shop/db", left: 7},
		{name: "an expression", text: "^shop/(db|mail)-[0-9]+$", left: MaxSteps},
		{name: "one that is larger than what is left", text: "shop/db", left: 6, err: ErrTooLarge.Error()},
		{name: "one that is small on paper", text: "(?:x{100}){10}", left: 999, err: ErrTooLarge.Error()},
		{name: "one whose repetitions are the most that can be", text: "(?:" + strings.Repeat("x", 3300) + "){1000}", left: MaxSteps, err: ErrTooLarge.Error()},
		{name: "one that Go itself does not take", text: "(?:" + strings.Repeat("x", 10000) + "){1000}", left: MaxSteps, err: ErrTooLarge.Error()},
		{name: "one that is very long", text: strings.Repeat("x", MaxSteps+1), left: 1 << 30, err: ErrTooLarge.Error()},
		{name: "one that is malformed", text: "canary(", left: MaxSteps, err: "missing closing )"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree, steps, err := Parse(test.text, test.left)
			switch {
			case test.err == "" && (err != nil || tree == nil || steps < 1):
				t.Errorf("%d steps, %v", steps, err)
			case test.err != "" && (err == nil || err.Error() != test.err || tree != nil):
				t.Errorf("the error is %v, want %q", err, test.err)
			}
		})
	}
}

// Whoever may write a workload or an ExternalSecret writes its expressions.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"db-.*", "((x{100}){10}){10}", `\pL{1000}`, "(?i)" + strings.Repeat("k", 100), "a)|(b", `\Qa`, "(?:[^a]{30}|b{0,1000})+"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, steps, err := Parse(text, MaxSteps)
		switch {
		case err != nil && len(err.Error()) > 100:
			t.Errorf("the error has %d bytes", len(err.Error()))
		case err != nil && (tree != nil || steps != 0):
			t.Error("there is an expression beside the error")
		case err == nil && (steps < 1 || steps > MaxSteps):
			t.Errorf("%d steps", steps)
		}
		if errors.Is(err, ErrTooLarge) {
			return
		}
		_, goSays := regexp.Compile(text)
		if _, _, compileErr := Compile(text, MaxSteps); (goSays == nil) != (err == nil) || (compileErr == nil) != (err == nil) {
			t.Errorf("Go says %v, Parse %v and Compile %v", goSays, err, compileErr)
		}
	})
}
