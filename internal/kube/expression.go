package kube

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxExpressionSteps is the maximum number of steps of all regular expressions of one annotation or custom resource together, and the maximum length
// of each in bytes: "x{1000}" has seven bytes, but a thousand steps when compiled. So the expressions take at most some 100 kB, and about half a
// millisecond to match a name of 253 characters: both grow with the steps.
const MaxExpressionSteps = 480

// ErrExpressionTooLarge means that an expression must not be compiled.
var ErrExpressionTooLarge = fmt.Errorf("the expressions have more than %d steps in all, with repetitions written out", MaxExpressionSteps)

// ParseExpression parses an expression of at most left steps. It returns an upper bound of its steps. No error quotes the expression, which may be
// very long.
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
	// With a group before it, an expression is not compiled a second time, to a program whose size may be the square of the steps, as package regexp
	// does if an expression begins with ^.
	if compiled, err = regexp.Compile("()" + text); err != nil {
		return nil, 0, shorter(err)
	}
	return compiled, steps, nil
}

// shorter returns an error without the expression.
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

// expanded returns an upper bound of an expression's instructions and character-range limits when its repetitions are written out.
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
