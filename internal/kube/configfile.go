package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// DecodeStrict decodes the YAML of a configuration file into a struct. An unknown or duplicate field is an error, and so is a second document. The
// error names the field or the line. It quotes no value, because the file may contain secrets.
func DecodeStrict(content []byte, into any) error {
	if err := single(content); err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return unreadable(err)
	}
	return nil
}

// The decoder has only texts for these errors, and no types. TestDecodeSaysWhereAndQuotesNoValue compares the texts with the real library: if an
// upgrade changes one, the test fails, and the error becomes less precise, but still quotes nothing.
var (
	lineOfError  = regexp.MustCompile(`\bline (\d+)`)
	unknownField = regexp.MustCompile(`unknown field "([A-Za-z]{1,20})"$`)
)

// unreadable returns an error without the text of the decoder, which may quote values.
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ")
		return fmt.Errorf("%s: is of type %s, want %s", wrong.Field, found, wrong.Type.Kind())
	}
	if field := unknownField.FindStringSubmatch(err.Error()); field != nil {
		return fmt.Errorf("%s: unknown field", field[1])
	}
	if line := lineOfError.FindStringSubmatch(err.Error()); line != nil {
		return fmt.Errorf("line %s: invalid YAML, or a duplicate field", line[1])
	}
	return errors.New("invalid YAML, or an unknown field")
}

// single returns an error if there is more than one document, because the decoder reads only the first.
func single(content []byte) error {
	begun, ended := false, false
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimRight(line, " \t\r\n")
		for _, marker := range []string{"---", "..."} {
			rest, marked := bytes.CutPrefix(line, []byte(marker))
			if !marked || len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			begun, ended, line = true, ended || begun, rest
		}
		line = bytes.TrimLeft(line, " \t")
		isContent := len(line) > 0 && line[0] != '#' && (begun || line[0] != '%') // directives come before a document
		if isContent && ended {
			return fmt.Errorf("line %d: a second YAML document, want one in a file", number)
		}
		begun = begun || isContent
	}
	return nil
}
