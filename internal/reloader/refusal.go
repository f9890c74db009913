package reloader

import (
	"errors"
	"fmt"
)

// problems collects what is wrong with the settings, with a line for each.
type problems []error

// refuse adds a setting with an invalid value.
func (p *problems) refuse(setting, value, want string) {
	*p = append(*p, fmt.Errorf("%s: %q, want %s", setting, value, want))
}

// wrong adds the error about a setting.
func (p *problems) wrong(setting string, err error) {
	*p = append(*p, fmt.Errorf("%s: %w", setting, err))
}

// add adds an error that names its setting, or nothing if it is nil.
func (p *problems) add(err error) {
	if err != nil {
		*p = append(*p, err)
	}
}

// err returns all problems as one error, or nil if there are none.
func (p *problems) err() error { return errors.Join(*p...) }
