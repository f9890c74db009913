package openbao

import (
	"encoding/json"
	"io"
	"time"
)

// scannedSecret is the part of a secret in the answer to a scan that is kept.
type scannedSecret struct {
	path    string
	version int64
	state   State
	at      time.Time
	// ok is false if the current version is missing among the versions.
	ok bool
}

// maxNesting is how deeply skipped fields may be nested.
const maxNesting = 64

// readKeyInfo returns the secrets in data.key_info of an answer, at a time by the store's clock. It holds the metadata of one secret at a time,
// because the metadata of a whole mount is much longer than the part that is kept. It returns errTooLong if there are more than most secrets.
func readKeyInfo(body io.Reader, now time.Time, most int) ([]scannedSecret, error) {
	var secrets []scannedSecret
	answer := json.NewDecoder(body)
	add := func(path string) error {
		var m *metadata
		if err := answer.Decode(&m); err != nil || m == nil {
			return err
		}
		if len(secrets) == most {
			return errTooLong
		}
		one := scannedSecret{path: path}
		one.version, one.state, one.at, one.ok = m.state(now)
		secrets = append(secrets, one)
		return nil
	}
	err := eachField(answer, only(answer, "data", func() error {
		return eachField(answer, only(answer, "key_info", func() error { return eachField(answer, add) }))
	}))
	return secrets, err
}

// only returns a function for eachField that calls read for the field with the given name and skips the others.
func only(answer *json.Decoder, name string, read func() error) func(string) error {
	return func(field string) error {
		if field == name {
			return read()
		}
		return skip(answer)
	}
}

// eachField calls read for each field of the next value, an object or null. read has to consume the field's value.
func eachField(answer *json.Decoder, read func(name string) error) error {
	switch begin, err := answer.Token(); {
	case err != nil:
		return err
	case begin == nil:
		return nil
	case begin != json.Delim('{'):
		return errAnswer
	}
	for answer.More() {
		name, err := answer.Token()
		if err != nil {
			return err
		}
		text, ok := name.(string)
		if !ok {
			return errAnswer
		}
		if err := read(text); err != nil {
			return err
		}
	}
	_, err := answer.Token()
	return err
}

// skip reads the next value without holding all of it.
func skip(answer *json.Decoder) error {
	for depth := 0; ; {
		token, err := answer.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		switch {
		case depth == 0:
			return nil
		case depth > maxNesting:
			return errAnswer
		}
	}
}
