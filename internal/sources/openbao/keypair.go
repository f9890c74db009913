package openbao

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// keypair is a certificate and its key, reloaded when their files change.
type keypair struct {
	certFile, keyFile string
	pair              atomic.Pointer[tls.Certificate]
	loaded            stamp
}

// newKeypair reads the files.
func newKeypair(certFile, keyFile string) (*keypair, error) {
	k := &keypair{certFile: certFile, keyFile: keyFile}
	return k, k.refresh()
}

func (k *keypair) current() *tls.Certificate { return k.pair.Load() }

// refresh reads the files if they changed. If they cannot be read, it keeps what it read last.
func (k *keypair) refresh() error {
	onDisk, err := stampOf(k.certFile, k.keyFile)
	if err != nil {
		return err
	}
	if onDisk == k.loaded {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	k.loaded = onDisk
	k.pair.Store(&pair)
	return nil
}
