package kube

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FieldPath is the path of fields in a Kubernetes object. The syntax is a subset of that of kubectl's -o jsonpath:
//
//	spec.replicas                                        a field
//	metadata.annotations['example.org/restarted-at']     a field whose name has other characters
//	spec.secrets[*]                                      all elements of a list
//	status.conditions[?(@.type=="Ready")].status         the elements of a list with a field of that text
//
// The zero value is the path of the object itself.
type FieldPath struct {
	text  string
	steps []step
	err   error
}

// UnmarshalText reads a path in a configuration. It keeps an invalid path, which Err reports, so that all problems can be reported at once.
func (p *FieldPath) UnmarshalText(text []byte) error {
	*p = FieldPath{text: string(text)}
	if len(text) == 0 {
		return nil
	}
	parsed, err := ParseFieldPath(string(text))
	p.steps, p.err = parsed.steps, err
	return nil
}

// Err returns the problem of a path that UnmarshalText has read, or nil.
func (p FieldPath) Err() error { return p.err }

// step leads from a value to a field, or to elements of a list.
type step struct {
	// name is the name of a field. If it is empty, the step leads to elements of a list.
	name string
	// where, if not empty, is a field of the elements that must have the text. Otherwise, all elements are selected.
	where, text string
}

// String returns the path as written.
func (p FieldPath) String() string { return p.text }

// Empty reports whether the path leads to the object itself.
func (p FieldPath) Empty() bool { return len(p.steps) == 0 }

// Names returns the names of the fields on the path. It returns false if the path leads through lists.
func (p FieldPath) Names() ([]string, bool) {
	names := make([]string, 0, len(p.steps))
	for _, s := range p.steps {
		if s.name == "" {
			return nil, false
		}
		names = append(names, s.name)
	}
	return names, true
}

// Values returns the values at the path in an object that was decoded from JSON. A field that is missing or null, or has another type than the path
// requires, has no value.
func (p FieldPath) Values(object any) []any {
	values := []any{object}
	for _, s := range p.steps {
		var next []any
		for _, value := range values {
			next = append(next, s.from(value)...)
		}
		values = next
	}
	return slices.DeleteFunc(values, func(value any) bool { return value == nil })
}

// Text returns the first value at the path that is a string, a number or a boolean, as text. It returns false if there is none.
func (p FieldPath) Text(object any) (string, bool) {
	if texts := p.Texts(object); len(texts) > 0 {
		return texts[0], true
	}
	return "", false
}

// Texts returns all values at the path that are strings, numbers or booleans, as text.
func (p FieldPath) Texts(object any) []string {
	var texts []string
	for _, value := range p.Values(object) {
		if text, ok := textOf(value); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// JSONPointer returns the JSON pointer of a field, given the names of the fields on the path to it.
func JSONPointer(names ...string) string {
	var pointer strings.Builder
	for _, name := range names {
		pointer.WriteString("/" + pointerEscapes.Replace(name))
	}
	return pointer.String()
}

func (s step) from(value any) []any {
	if s.name != "" {
		fields, _ := value.(map[string]any)
		return []any{fields[s.name]}
	}
	elements, _ := value.([]any)
	if s.where == "" {
		return elements
	}
	var selected []any
	for _, element := range elements {
		fields, _ := element.(map[string]any)
		if text, ok := textOf(fields[s.where]); ok && text == s.text {
			selected = append(selected, element)
		}
	}
	return selected
}

func textOf(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64), true
	}
	return "", false
}

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

// ParseFieldPath reads a path. The error describes the problem, but does not quote the path.
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
