package openbao

import (
	"encoding/json"
	"io"
	"time"
)

// scannedSecret is the kept part of a secret in the answer to a scan.
type scannedSecret struct {
	path    string
	version int64
	state   State
	at      time.Time
	ok      bool // false: the current version is missing among the versions
}

// readKeyInfo returns the secrets in data.key_info of an answer, at a time by the store's clock. It has the metadata of one secret in memory at a
// time, because the kept part is much shorter than the metadata of a whole mount. It returns errTooLong if there are more than most secrets.
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
	err := within(answer, []string{"data", "key_info"}, add)
	return secrets, err
}

// within calls read for each field of the object at the path in the next value, and skips all others. Both objects may be null. read must consume the
// field's value.
func within(answer *json.Decoder, path []string, read func(name string) error) error {
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
		switch text, _ := name.(string); { // The decoder accepts no other name.
		case err != nil:
		case len(path) == 0:
			err = read(text)
		case text == path[0]:
			err = within(answer, path[1:], read)
		default:
			err = answer.Decode(&nothing{})
		}
		if err != nil {
			return err
		}
	}
	_, err := answer.Token()
	return err
}

// nothing accepts a value of any type and discards it.
type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }
