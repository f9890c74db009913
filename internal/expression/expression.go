// Package expression bounds the memory that regular expressions in annotations and custom resources take: "x{1000}" is seven bytes long
// and has a thousand steps once it is compiled.
package expression

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxSteps is how many steps the expressions of one annotation or one object may have in all, and how many bytes each may be long. They
// take a few megabytes at most.
const MaxSteps = 16 << 10

// ErrTooLarge means that an expression must not be compiled.
var ErrTooLarge = fmt.Errorf("the expressions have more than %d steps in all", MaxSteps)

// Parse parses an expression, which may have at most left steps. It returns about how many it has. No error quotes the expression, which may
// be very long.
func Parse(text string, left int) (tree *syntax.Regexp, steps int, err error) {
	if len(text) > MaxSteps {
		return nil, 0, ErrTooLarge
	}
	tree, err = syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, shorter(err)
	}
	if steps = expanded(tree); steps > left {
		return nil, 0, ErrTooLarge
	}
	return tree, steps, nil
}

// Compile is Parse for an expression that is going to be matched.
func Compile(text string, left int) (compiled *regexp.Regexp, steps int, err error) {
	if _, steps, err = Parse(text, left); err != nil {
		return nil, 0, err
	}
	if compiled, err = regexp.Compile(text); err != nil {
		return nil, 0, shorter(err)
	}
	return compiled, steps, nil
}

// shorter drops the expression from an error.
func shorter(err error) error {
	syntaxErr, ok := errors.AsType[*syntax.Error](err)
	switch {
	case !ok:
		return errors.New("malformed")
	case syntaxErr.Code == syntax.ErrLarge:
		return ErrTooLarge
	}
	return errors.New(syntaxErr.Code.String())
}

// expanded returns about how many steps and character ranges an expression has with its repetitions written out.
func expanded(tree *syntax.Regexp) int {
	size := max(1, len(tree.Rune))
	for _, sub := range tree.Sub {
		size += expanded(sub)
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return size
}
