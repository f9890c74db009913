package bus

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/nats-io/nats.go"
)

// secrets makes names that only programs with the key of the same NATS user know. Nil means a user without a key, for example with a password or a
// certificate. Then names are plain, and others may guess them.
type secrets []byte

// secretText is signed for the secrets. No challenge of a server has spaces.
const secretText = "keyturn names of consumers and messages"

// secretsOf returns the secrets of a connection's user: a digest of a signature by its NKey, which is the same each time.
func secretsOf(nc *nats.Conn) (secrets, error) {
	sign := nc.Opts.SignatureCB
	if sign == nil {
		return nil, nil
	}
	signature, err := sign([]byte(secretText))
	if err != nil {
		return nil, fmt.Errorf("signing with the key of the nats user: %w", err)
	}
	sum := sha256.Sum256(signature)
	return sum[:], nil
}

// consumerName returns the name of a durable consumer on the server. Anyone who may read a stream by a consumer may also change or drain any other
// consumer with a known name.
func (s secrets) consumerName(durable string) string { return s.mark(durable, "-") }

// messageID returns the id of a message. Anyone who may publish on any subject of a stream may be the first to use a known id. The message would then
// count as a duplicate, and not be stored.
func (s secrets) messageID(id string) string { return s.mark(id, "/") }

// mark appends a part that is derived from the text and the key.
func (s secrets) mark(text, separator string) string {
	if s == nil {
		return text
	}
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(separator + text))
	return text + separator + hex.EncodeToString(mac.Sum(nil)[:16])
}
