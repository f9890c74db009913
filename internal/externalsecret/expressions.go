package externalsecret

import (
	"regexp"

	"github.com/keyturn/keyturn/internal/expression"
)

// expressions compiles the regular expressions of one object. Whoever may write the object must not exhaust the time and the memory of the programs.
type expressions struct{ steps int }

// compile compiles an expression. If it is too large, the error is expression.ErrTooLarge: anything may match it.
func (e *expressions) compile(text string) (*regexp.Regexp, error) {
	compiled, steps, err := expression.Compile(text, expression.MaxSteps-e.steps)
	e.steps += steps
	return compiled, err
}
