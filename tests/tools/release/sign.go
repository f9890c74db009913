package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// What cosign calls a signature of an image, https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
const (
	simpleSigning       types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation                 = "dev.cosignproject.cosign/signature"
)

// sign signs the checksums, and all that has a name in the registry.
func (r release) sign(checksums []byte) error {
	key, public, err := r.readKeys()
	if err != nil {
		return err
	}
	if err := r.write("cosign.pub", public); err != nil {
		return err
	}
	sum, err := signBytes(key, checksums)
	if err != nil {
		return err
	}
	if err := r.write("checksums.txt.sig", []byte(sum)); err != nil {
		return err
	}
	archives, err := filepath.Glob(r.path("keyturn-v*.tar"))
	if err != nil {
		return err
	}
	var signatures []named
	for _, path := range archives {
		of, err := signArchive(key, path)
		if err != nil {
			return err
		}
		signatures = append(signatures, of...)
	}
	return writeLayout(r.path(r.layout(signaturesLayout)), r.time, signatures)
}

// readKeys returns the private key, and the file of the public key that the checkout must have: who verifies takes it from there.
func (r release) readKeys() (*ecdsa.PrivateKey, []byte, error) {
	key, err := readKey(r.key, os.Getenv("COSIGN_PASSWORD"))
	if err != nil {
		return nil, nil, err
	}
	const publicFile = "cosign.pub"
	content, err := os.ReadFile(filepath.Join(r.root, publicFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: is not in the repository: commit the public key of SIGNING_KEY there", publicFile)
	}
	if err != nil {
		return nil, nil, err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", publicFile, err)
	}
	if !key.PublicKey.Equal(public) {
		return nil, nil, fmt.Errorf("SIGNING_KEY: %s is not the private key of the %s in the repository", r.key, publicFile)
	}
	return key, content, nil
}

// readKey returns a private key of cosign. Of the kinds that cosign has, this is the one that it makes by default.
func readKey(path, password string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("SIGNING_KEY: %w", err)
	}
	key, err := cryptoutils.UnmarshalPEMToPrivateKey(content, cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		return nil, fmt.Errorf("SIGNING_KEY: %s is no key of cosign, or COSIGN_PASSWORD has not its password: %w", path, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("SIGNING_KEY: %s is a %T, want one of ECDSA", path, key)
	}
	return private, nil
}

// signBytes returns the signature of a content in base64, which it has verified. Without randomness it is the same each time (RFC 6979).
func signBytes(key *ecdsa.PrivateKey, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	made, err := key.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return "", err
	}
	verifier, err := signature.LoadVerifier(key.Public(), crypto.SHA256)
	if err != nil {
		return "", err
	}
	if err := verifier.VerifySignature(bytes.NewReader(made), bytes.NewReader(content)); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(made), nil
}

// signArchive returns a signature for each of the named entries of an OCI archive, and for the provenances among the others.
func signArchive(key *ecdsa.PrivateKey, path string) ([]named, error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	entries, err := uploads(path, dir)
	if err != nil {
		return nil, err
	}
	var all []named
	for _, one := range entries {
		made, isSigned, err := signEntry(key, one)
		if err != nil {
			return nil, err
		}
		if isSigned {
			all = append(all, made)
		}
	}
	return all, nil
}

// signEntry returns the signature of an entry of an OCI archive. It reports false for one that needs none, such as an SBOM.
func signEntry(key *ecdsa.PrivateKey, one upload) (made named, isSigned bool, err error) {
	repository := one.reference.Context()
	if _, isNamed := one.reference.(name.Tag); isNamed {
		made, err = signDigest(key, repository, one.entry.Digest)
		return made, true, err
	}
	image, err := one.index.Image(one.entry.Digest)
	if err != nil {
		return named{}, false, err
	}
	return attest(key, repository, image)
}

// cosignTag returns the tag where cosign looks for what it keeps about something.
func cosignTag(digest v1.Hash, kind string) string {
	return strings.Replace(digest.String(), ":", "-", 1) + "." + kind
}

// signDigest returns the signature of something in a registry, under the tag where cosign looks for it.
func signDigest(key *ecdsa.PrivateKey, repository name.Repository, digest v1.Hash) (named, error) {
	content, err := json.Marshal(payload.Cosign{Image: repository.Digest(digest.String())})
	if err != nil {
		return named{}, err
	}
	made, err := signBytes(key, content)
	if err != nil {
		return named{}, err
	}
	config, err := imageConfig(content)
	if err != nil {
		return named{}, err
	}
	image, err := newArtifact(types.OCIConfigJSON, config, simpleSigning, content, map[string]string{signatureAnnotation: made}, nil)
	if err != nil {
		return named{}, err
	}
	return named{repository.Tag(cosignTag(digest, "sig")), image}, nil
}

// makeKey writes a pair of keys as cosign does. It replaces none, nor half of one.
func makeKey(dir, password string) error {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		return err
	}
	privateFile := filepath.Join(dir, "cosign.key")
	if err := writeNew(privateFile, private, 0o600); err != nil {
		return err
	}
	if err := writeNew(filepath.Join(dir, "cosign.pub"), public, 0o644); err != nil {
		return errors.Join(err, os.Remove(privateFile))
	}
	return nil
}

// writeNew writes a file that must not exist yet.
func writeNew(path string, content []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
