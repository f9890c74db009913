// Package configfile reads the configuration files of the programs, which name secrets or are secret themselves.
package configfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Decode reads YAML into a struct. A field that the struct does not have, and one that is there twice, is an error. Errors
// say where the content is not as it must be, and quote no value of it.
func Decode(content []byte, into any) error {
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return unreadable(err)
	}
	return nil
}

var (
	lineOfError  = regexp.MustCompile(`\bline (\d+)`)
	unknownField = regexp.MustCompile(`unknown field "([A-Za-z]{1,20})"$`)
)

// unreadable replaces the text of the decoder, some of which quotes values.
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		found, _, _ := strings.Cut(wrong.Value, " ")
		return fmt.Errorf("%s: is of type %s, want %s", wrong.Field, found, wrong.Type.Kind())
	}
	if field := unknownField.FindStringSubmatch(err.Error()); field != nil {
		return fmt.Errorf("%s: is no field that is known here", field[1])
	}
	if line := lineOfError.FindStringSubmatch(err.Error()); line != nil {
		return fmt.Errorf("line %s: is not YAML, or has a field twice", line[1])
	}
	return errors.New("it is not YAML with the fields that are known")
}
