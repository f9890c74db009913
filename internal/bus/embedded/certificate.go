package embedded

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/conf"
)

// certificate is a certificate that the server presents to its clients, or to other servers. New connections get the current content of the files.
// While the files have no valid pair, for example because only one of them is new, connections get the previous pair.
type certificate struct {
	logger *slog.Logger

	mu                sync.Mutex
	certFile, keyFile string         // empty if the server has no certificate, or does not read it from two files
	roots             *x509.CertPool // the CAs of the other servers; nil means any CA
	content           [2][]byte      // the content of the files from which current was read
	current           *tls.Certificate
	// refused is the last logged error. It is cleared when the files are valid again.
	refused string
}

// present makes the TLS configuration of a block in a configuration file present the certificate, to clients and to the servers that this one
// connects to. The path is the name of the block, with those around it. With roots, only a certificate of these CAs replaces the previous one.
func (c *certificate) present(config *tls.Config, roots *x509.CertPool, configFile string, path ...string) error {
	if len(config.Certificates) == 0 || config.Certificates[0].Leaf == nil {
		return nil
	}
	certFile, keyFile, err := certificateFiles(configFile, path)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.content, c.roots = &config.Certificates[0], [2][]byte{}, roots
	if c.certFile, c.keyFile = certFile, keyFile; certFile == "" || keyFile == "" {
		return nil
	}
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(hello.Context()), nil }
	config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return c.get(request.Context()), nil
	}
	config.Certificates = nil // otherwise, a client that connects to an address, without a server name, would get it
	return nil
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
		c.logger.ErrorContext(ctx, "cannot read the nats certificate; connections get the previous one", "err", err, "until", c.current.Leaf.NotAfter)
	}
	return c.current
}

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
		// The error may quote a line of a file.
		return fmt.Errorf("%s, %s: want a certificate and its private key in PEM", c.certFile, c.keyFile)
	}
	if err := c.trusts(pair); err != nil {
		return fmt.Errorf("%s: %w", c.certFile, err)
	}
	if !bytes.Equal(pair.Leaf.Raw, c.current.Leaf.Raw) {
		c.logger.InfoContext(ctx, "nats certificate replaced, new connections get it", "file", c.certFile, "until", pair.Leaf.NotAfter)
	}
	c.current, c.content = &pair, [2][]byte{certificate, key}
	return nil
}

// trusts returns an error if the certificate is not of a CA in the roots. It does not check the validity period.
func (c *certificate) trusts(pair tls.Certificate) error {
	if c.roots == nil {
		return nil
	}
	chain := x509.NewCertPool()
	for _, raw := range pair.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(raw); err == nil {
			chain.AddCert(intermediate)
		}
	}
	_, err := pair.Leaf.Verify(x509.VerifyOptions{
		Roots: c.roots, Intermediates: chain, CurrentTime: pair.Leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}

// end returns when the certificate expires, or zero if there is none.
func (c *certificate) end(ctx context.Context) time.Time {
	if present := c.get(ctx); present != nil {
		return present.Leaf.NotAfter
	}
	return time.Time{}
}

// certificateFiles returns the files in a tls block of a configuration file of the server, which does not expose them itself. They are empty
// if the block has no such files but, for example, a certificate store of the system.
func certificateFiles(configFile string, path []string) (certificate, key string, err error) {
	block, err := conf.ParseFile(configFile)
	if err != nil {
		return "", "", err
	}
	for _, name := range path {
		block, _ = field(block, name).(map[string]any)
	}
	certificate, _ = field(block, "cert_file").(string)
	key, _ = field(block, "key_file").(string)
	return certificate, key, nil
}

// field returns a field of a block, whose name may be written in any case, or nil if there is none.
func field(block map[string]any, name string) any {
	for written, value := range block {
		if strings.EqualFold(written, name) {
			return value
		}
	}
	return nil
}
