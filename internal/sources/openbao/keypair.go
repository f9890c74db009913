package openbao

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// keypair is a certificate with its key that are read again when their files have changed.
type keypair struct {
	certFile, keyFile string
	pair              atomic.Pointer[tls.Certificate]
	seen              stamp
}

// newKeypair reads the files.
func newKeypair(certFile, keyFile string) (*keypair, error) {
	k := &keypair{certFile: certFile, keyFile: keyFile}
	return k, k.refresh()
}

func (k *keypair) current() *tls.Certificate { return k.pair.Load() }

// refresh reads the files where they have changed. Where they cannot be read, what was read last stays.
func (k *keypair) refresh() error {
	seen, err := stampOf(k.certFile, k.keyFile)
	if err != nil {
		return err
	}
	if seen == k.seen {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	k.seen = seen
	k.pair.Store(&pair)
	return nil
}
