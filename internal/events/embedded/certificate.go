package embedded

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/conf"
)

// certificate is the certificate that the server presents to its clients. Each new connection gets the current content of the files, so a renewed
// certificate needs no restart. While the files have no valid pair, for example because only one of them is new, connections get the previous one.
type certificate struct {
	logger *slog.Logger

	mu sync.Mutex
	// certFile and keyFile are empty if the server has no certificate, or does not read it from two files.
	certFile, keyFile string
	// content is the content of the files from which current was read.
	content [2][]byte
	current *tls.Certificate
	// refused is the last error that was logged. It is cleared when the files are valid again.
	refused string
}

// present makes a TLS configuration, which was read from a configuration file of the server, present the certificate.
func (c *certificate) present(config *tls.Config, configFile string) error {
	if len(config.Certificates) == 0 || config.Certificates[0].Leaf == nil {
		return nil
	}
	certFile, keyFile, err := certificateFiles(configFile)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.content = &config.Certificates[0], [2][]byte{}
	if c.certFile, c.keyFile = certFile, keyFile; certFile == "" || keyFile == "" {
		return nil
	}
	config.GetCertificate = c.greet
	config.Certificates = nil // otherwise, a client that connects to an address, without a server name, would get it
	return nil
}

// greet returns the certificate for a new connection.
func (c *certificate) greet(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.get(hello.Context()), nil
}

// get returns the certificate in the files or, if they have no valid one, the previous one.
func (c *certificate) get(ctx context.Context) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.certFile == "" {
		return c.current
	}
	err := c.read(ctx)
	switch {
	case err == nil:
		c.refused = ""
	case err.Error() != c.refused:
		c.refused = err.Error()
		c.logger.ErrorContext(ctx, "nats certificate cannot be read, connections get the one before", "err", err, "until", c.current.Leaf.NotAfter)
	}
	return c.current
}

// read replaces the certificate if the files have changed.
func (c *certificate) read(ctx context.Context) error {
	certificate, err := os.ReadFile(c.certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return err
	}
	if bytes.Equal(certificate, c.content[0]) && bytes.Equal(key, c.content[1]) {
		return nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		// Its error may quote a line of a file.
		return fmt.Errorf("%s, %s: want a certificate and its private key in PEM", c.certFile, c.keyFile)
	}
	if !bytes.Equal(pair.Leaf.Raw, c.current.Leaf.Raw) {
		c.logger.InfoContext(ctx, "nats certificate replaced, new connections get it", "until", pair.Leaf.NotAfter)
	}
	c.current, c.content = &pair, [2][]byte{certificate, key}
	return nil
}

// end returns when the certificate expires. Zero means that there is none.
func (c *certificate) end(ctx context.Context) time.Time {
	if present := c.get(ctx); present != nil {
		return present.Leaf.NotAfter
	}
	return time.Time{}
}

// certificateFiles returns the files in the tls block of a configuration file of the server, which does not expose them itself. They are empty
// if the block has no such files but, for example, a certificate store of the system.
func certificateFiles(configFile string) (certificate, key string, err error) {
	config, err := conf.ParseFile(configFile)
	if err != nil {
		return "", "", err
	}
	for name, value := range config {
		block, ok := value.(map[string]any)
		if !ok || !strings.EqualFold(name, "tls") {
			continue
		}
		for name, value := range block {
			switch path, _ := value.(string); strings.ToLower(name) {
			case "cert_file":
				certificate = path
			case "key_file":
				key = path
			}
		}
	}
	return certificate, key, nil
}
