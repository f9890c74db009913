package main

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// artifacts returns the SBOM and the provenance of a platform's image, each as an artifact that refers to the image.
func artifacts(version, name string, b build, img v1.Image, notes map[string]string) ([]v1.Image, error) {
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	subject.ArtifactType = "" // It is an image.
	bom, err := sbom(version, b)
	if err != nil {
		return nil, err
	}
	statement, err := provenance(version, name, b, subject.Digest)
	if err != nil {
		return nil, err
	}
	var all []v1.Image
	for _, content := range []struct {
		mediaType types.MediaType
		bytes     []byte
	}{{sbomType, bom}, {provenanceType, statement}} {
		artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), content.mediaType)
		artifact, err := mutate.AppendLayers(artifact, static.NewLayer(content.bytes, content.mediaType))
		if err != nil {
			return nil, err
		}
		all = append(all, mutate.Subject(mutate.Annotations(artifact, notes).(v1.Image), *subject).(v1.Image))
	}
	return all, nil
}
