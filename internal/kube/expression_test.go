package kube

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAnExpressionIsParsedUnlessItIsTooLarge(t *testing.T) {
	for _, test := range []struct {
		name, text string
		left       int
		err        string
	}{
		{name: "a name", text: "shop/db", left: 7},
		{name: "one that is larger than what is left", text: "shop/db", left: 6, err: ErrExpressionTooLarge.Error()},
		{name: "one that is small on paper", text: "(?:x{100}){10}", left: 999, err: ErrExpressionTooLarge.Error()},
		{name: "one whose repetitions are the most that can be", text: "(?:" + strings.Repeat("x", 330) + "){1000}", left: MaxExpressionSteps, err: ErrExpressionTooLarge.Error()},
		{name: "one with a class of very many characters", text: `\pL`, left: MaxExpressionSteps, err: ErrExpressionTooLarge.Error()},
		{name: "one that is malformed", text: "canary(", left: MaxExpressionSteps, err: "missing closing )"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree, steps, err := ParseExpression(test.text, test.left)
			switch {
			case test.err == "" && (err != nil || tree == nil || steps < 1):
				t.Errorf("%d steps, %v", steps, err)
			case test.err != "" && (err == nil || err.Error() != test.err || tree != nil):
				t.Errorf("the error is %v, want %q", err, test.err)
			}
		})
	}
}

// An annotation of these expressions must take as little as its steps say, in memory and when it is matched.
func TestACompiledExpressionIsSmall(t *testing.T) {
	optional := ""
	for r := rune('\u0100'); len(optional)+len("^$")+3 <= MaxExpressionSteps; r += 2 {
		optional += string(r) + "?"
	}
	for _, text := range []string{"^x{235}$", "^(?:a?){150}b$", "^" + optional + "$", "^(?:[a-c]x*){60}$", "((a|b)|(c|dd)|(e|)){20}"} {
		const compiled = 50
		kept := make([]*regexp.Regexp, compiled)
		before := heap()
		for i := range kept {
			var steps int
			var err error
			if kept[i], steps, err = CompileExpression(text, MaxExpressionSteps); err != nil || steps < MaxExpressionSteps/2 {
				t.Fatalf("%.20s: %d steps, %v", text, steps, err)
			}
		}
		if size := (heap() - before) / compiled; size > 64<<10 {
			t.Errorf("%.20s takes %d bytes", text, size)
		}
		runtime.KeepAlive(kept)
	}
}

// instructions returns how many instructions an expression has when it is compiled, without the two that each has.
func instructions(t *testing.T, text string) int {
	t.Helper()
	tree, err := syntax.Parse(text, syntax.Perl)
	testkit.Must(t, err)
	program, err := syntax.Compile(tree.Simplify())
	testkit.Must(t, err)
	return len(program.Inst) - 2
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// Whoever may write a workload or an ExternalSecret writes its expressions.
func FuzzParseExpression(f *testing.F) {
	for _, text := range []string{"db-.*", "((x{100}){10}){10}", `\pL{1000}`, "(?i)" + strings.Repeat("k", 100), "a)|(b", `\Qa`, "(?:[^a]{30}|b{0,1000})+"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, steps, err := ParseExpression(text, MaxExpressionSteps)
		switch {
		case err != nil && len(err.Error()) > 100:
			t.Errorf("the error has %d bytes", len(err.Error()))
		case err != nil && (tree != nil || steps != 0):
			t.Error("there is an expression beside the error")
		case err == nil && (steps < 1 || steps > MaxExpressionSteps):
			t.Errorf("%d steps", steps)
		}
		if errors.Is(err, ErrExpressionTooLarge) {
			return
		}
		_, goSays := regexp.Compile(text)
		if _, _, compileErr := CompileExpression(text, MaxExpressionSteps); (goSays == nil) != (err == nil) || (compileErr == nil) != (err == nil) {
			t.Errorf("Go says %v, Parse %v and Compile %v", goSays, err, compileErr)
		}
		if err == nil && instructions(t, text) > steps {
			t.Errorf("%d steps are %d instructions", steps, instructions(t, text))
		}
	})
}
