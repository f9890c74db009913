//go:build unix

package program

import (
	"errors"
	"syscall"
	"testing"
)

func TestAFileSystemWithoutLocksIsUsedWithoutOne(t *testing.T) {
	for _, tt := range []struct {
		name        string
		said, wants error
	}{
		{"it is locked", nil, nil},
		{"another process has the lock", syscall.EWOULDBLOCK, errInUse},
		{"a file system without locks", syscall.ENOTSUP, nil},
		{"a share without a service of locks", syscall.ENOLCK, nil},
		{"another failure", syscall.EIO, syscall.EIO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := refusal(tt.said); !errors.Is(err, tt.wants) {
				t.Errorf("got %v, want %v", err, tt.wants)
			}
		})
	}
}
