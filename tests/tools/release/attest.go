package main

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What cosign calls an attestation of an image, https://github.com/sigstore/cosign/blob/main/specs/ATTESTATION_SPEC.md, and the type of the statement
// in it.
const (
	envelopeType        types.MediaType = "application/vnd.dsse.envelope.v1+json"
	statementType       types.MediaType = "application/vnd.in-toto+json"
	predicateAnnotation                 = "predicateType"
)

// envelope is a signed statement, https://github.com/secure-systems-lab/dsse/blob/master/envelope.md.
type envelope struct {
	PayloadType types.MediaType     `json:"payloadType"`
	Payload     []byte              `json:"payload"`
	Signatures  []envelopeSignature `json:"signatures"`
}

type envelopeSignature struct {
	KeyID     string `json:"keyid"`
	Signature string `json:"sig"`
}

// attest returns the provenance of a platform's image in an envelope that is signed, under the tag where cosign looks for it. It reports false for an
// entry of an OCI archive that is no provenance.
func attest(key *ecdsa.PrivateKey, repository name.Repository, entry v1.Image) (made named, isProvenance bool, err error) {
	manifest, err := entry.Manifest()
	if err != nil || manifest.Config.MediaType != statementType {
		return named{}, false, err
	}
	statement, err := onlyLayer(entry)
	if err != nil {
		return named{}, false, err
	}
	predicate, err := predicateOf(statement, manifest.Subject)
	if err != nil {
		return named{}, false, err
	}
	content, err := signStatement(key, statement)
	if err != nil {
		return named{}, false, err
	}
	config, err := imageConfig(content)
	if err != nil {
		return named{}, false, err
	}
	// cosign has the annotation of a signature here, too, and leaves it empty.
	about := map[string]string{signatureAnnotation: "", predicateAnnotation: predicate}
	image, err := newArtifact(types.OCIConfigJSON, config, envelopeType, content, about, nil)
	if err != nil {
		return named{}, false, err
	}
	return named{repository.Tag(cosignTag(manifest.Subject.Digest, "att")), image}, true, nil
}

// predicateOf returns the type of what a statement says. It must be about the image that it refers to, because that is what the signature vouches for.
func predicateOf(statement []byte, image *v1.Descriptor) (string, error) {
	var said struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(statement, &said); err != nil {
		return "", fmt.Errorf("reading a provenance: %w", err)
	}
	if image == nil || len(said.Subject) != 1 || said.Subject[0].Digest[image.Digest.Algorithm] != image.Digest.Hex {
		return "", errors.New("the provenance of an image is about another one")
	}
	return said.PredicateType, nil
}

// signStatement returns an envelope with a statement. The signature is of both and their lengths, so that none of it can be read as another type.
func signStatement(key *ecdsa.PrivateKey, statement []byte) ([]byte, error) {
	made, err := signBytes(key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(statementType), statementType, len(statement), statement))
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{PayloadType: statementType, Payload: statement, Signatures: []envelopeSignature{{Signature: made}}})
}

// onlyLayer returns the content of an artifact.
func onlyLayer(artifact v1.Image) (content []byte, err error) {
	layers, err := artifact.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) != 1 {
		return nil, fmt.Errorf("an artifact has %d layers, want 1", len(layers))
	}
	file, err := layers[0].Compressed()
	if err != nil {
		return nil, err
	}
	content, err = io.ReadAll(file)
	return content, errors.Join(err, file.Close())
}
