//go:build !linux

package process

import (
	"errors"
	"fmt"
)

// Pin returns an error: only Linux can do it.
func (p *Process) Pin(...int) error {
	return fmt.Errorf("pin %s: %w", p.name, errors.ErrUnsupported)
}
