package kube

import (
	"errors"
	"fmt"
	"strings"
)

// The limits of a path, in bytes and in steps.
const (
	maxLength = 512
	maxSteps  = 16
)

var (
	errEmpty = errors.New("is empty")
	errName  = errors.New("a name has letters, digits, - and _; others are written as ['name']")
	errIndex = errors.New("in brackets are a name in single quotes, * for all elements, or ?(@.name==\"text\") for those with a field of that text")
)

// Parse reads a path. The error says what is wrong, but does not quote the path.
func ParseFieldPath(text string) (FieldPath, error) {
	switch {
	case text == "":
		return FieldPath{}, errEmpty
	case len(text) > maxLength:
		return FieldPath{}, fmt.Errorf("has %d bytes, want at most %d", len(text), maxLength)
	}
	p := FieldPath{text: text}
	rest := "." + text
	for rest != "" {
		var s step
		var err error
		if s, rest, err = next(rest, len(p.steps) == 0); err != nil {
			return FieldPath{}, err
		}
		if p.steps = append(p.steps, s); len(p.steps) > maxSteps {
			return FieldPath{}, fmt.Errorf("has more than %d steps", maxSteps)
		}
	}
	return p, nil
}

// next reads one step.
func next(text string, first bool) (s step, rest string, err error) {
	switch {
	case text[0] == '[' && !first:
		return bracketed(text[1:])
	case text[0] != '.':
		return step{}, "", errName
	}
	text = text[1:]
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	if !isName(text[:end]) {
		return step{}, "", errName
	}
	return step{name: text[:end]}, text[end:], nil
}

// bracketed reads a step in brackets. The text begins after the opening bracket.
func bracketed(text string) (s step, rest string, err error) {
	if rest, ok := strings.CutPrefix(text, "*]"); ok {
		return step{}, rest, nil
	}
	if quoted, ok := strings.CutPrefix(text, "'"); ok {
		name, rest, closed := strings.Cut(quoted, "']")
		if !closed || name == "" || strings.Contains(name, "'") {
			return step{}, "", errIndex
		}
		return step{name: name}, rest, nil
	}
	condition, ok := strings.CutPrefix(text, "?(@.")
	if !ok {
		return step{}, "", errIndex
	}
	where, value, compared := strings.Cut(condition, `=="`)
	value, rest, closed := strings.Cut(value, `")]`)
	if !compared || !closed || !isName(where) || strings.Contains(value, `"`) {
		return step{}, "", errIndex
	}
	return step{where: where, text: value}, rest, nil
}

// isName reports whether a name can be written between dots.
func isName(text string) bool {
	for _, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return text != ""
}
