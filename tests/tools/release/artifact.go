package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/keyturn/keyturn/tests/tools/image/archive"
)

// The media types of an artifact of Flux's, https://fluxcd.io/flux/cheatsheets/oci-artifacts.
const (
	fluxConfig  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContent types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// artifact is something in a registry that is no image: a configuration and one layer.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

func newArtifact(
	configType types.MediaType, config []byte, contentType types.MediaType, content []byte, about, annotations map[string]string,
) (v1.Image, error) {
	layer := static.NewLayer(content, contentType)
	digest, err := layer.Digest()
	if err != nil {
		return nil, err
	}
	of, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: annotations,
		Config: v1.Descriptor{MediaType: configType, Size: size, Digest: of},
		Layers: []v1.Descriptor{{MediaType: contentType, Size: int64(len(content)), Digest: digest, Annotations: about}},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{config, manifest, layer})
}

func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

func (a artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

func (a artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }

// imageConfig is the configuration of an image of one layer, which is all that Flux and cosign want there.
func imageConfig(content []byte) ([]byte, error) {
	digest, _, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{digest}}})
}

func (r release) annotations(description string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "keyturn",
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
		// Flux shows these two.
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.revision": r.version + "@sha1:" + r.commit,
	}
}

// deploy returns the folder deploy as an artifact for Flux.
func (r release) deploy() (v1.Image, error) {
	content, err := r.pack(filepath.Join(r.root, "deploy"), "deploy/")
	if err != nil {
		return nil, err
	}
	config, err := imageConfig(content)
	if err != nil {
		return nil, err
	}
	return newArtifact(fluxConfig, config, fluxContent, content, nil, r.annotations("The folder deploy of Keyturn, for Flux."))
}

// pack returns the files of a folder as a compressed tar, each with a prefix.
func (r release) pack(dir, prefix string) ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	err := errors.Join(archive.Write(compressed, dir, prefix, r.time), compressed.Close())
	return packed.Bytes(), err
}

// artifacts returns what the registry gets beside the image.
func (r release) artifacts(chart v1.Image) ([]named, error) {
	deploy, err := r.deploy()
	if err != nil {
		return nil, err
	}
	deployTag, err := r.tag("keyturn/manifests", r.version)
	if err != nil {
		return nil, err
	}
	chartTag, err := r.tag("charts/keyturn", r.bare())
	if err != nil {
		return nil, err
	}
	return []named{{deployTag, deploy}, {chartTag, chart}}, nil
}
