package kube

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxExpressionSteps is how many steps all regular expressions of one annotation or one custom resource may have together, and the maximum length of
// each in bytes: "x{1000}" is seven bytes long, but has a thousand steps when compiled. So they take some 100 kB at most, and about half a
// millisecond to be matched with a name of 253 characters: both grow with the steps.
const MaxExpressionSteps = 480

// ErrExpressionTooLarge means that an expression must not be compiled.
var ErrExpressionTooLarge = fmt.Errorf("the expressions have more than %d steps in all, with repetitions written out", MaxExpressionSteps)

// ParseExpression parses an expression that may have at most left steps. It returns how many steps it has at most. No error quotes the
// expression, which may be very long.
func ParseExpression(text string, left int) (tree *syntax.Regexp, steps int, err error) {
	if len(text) > MaxExpressionSteps {
		return nil, 0, ErrExpressionTooLarge
	}
	tree, err = syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, shorter(err)
	}
	if steps = expanded(tree); steps > left {
		return nil, 0, ErrExpressionTooLarge
	}
	return tree, steps, nil
}

// CompileExpression is like ParseExpression, but returns the compiled expression.
func CompileExpression(text string, left int) (compiled *regexp.Regexp, steps int, err error) {
	if _, steps, err = ParseExpression(text, left); err != nil {
		return nil, 0, err
	}
	// With a group before it, an expression is not compiled a second time, to a program whose size may be the square of the steps. Package regexp
	// does that if an expression begins with ^.
	if compiled, err = regexp.Compile("()" + text); err != nil {
		return nil, 0, shorter(err)
	}
	return compiled, steps, nil
}

// shorter returns an error without the expression in it.
func shorter(err error) error {
	syntaxErr, ok := errors.AsType[*syntax.Error](err)
	switch {
	case !ok:
		return errors.New("malformed")
	case syntaxErr.Code == syntax.ErrLarge:
		return ErrExpressionTooLarge
	}
	return errors.New(syntaxErr.Code.String())
}

// expanded returns how many instructions and limits of character ranges an expression has at most when its repetitions are written out.
func expanded(tree *syntax.Regexp) int {
	size := max(1, len(tree.Rune))
	switch tree.Op {
	case syntax.OpCapture, syntax.OpStar:
		size = 2
	case syntax.OpAlternate:
		size = len(tree.Sub)
	}
	for _, sub := range tree.Sub {
		size += expanded(sub)
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return size
}
