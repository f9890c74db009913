package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// publish pushes the OCI archives of a release to where their names say. The tags of a registry appear in the order of the names of the files: the
// signatures come last.
func publish(ctx context.Context, dist string) error {
	archives, err := filepath.Glob(filepath.Join(dist, "keyturn-v*.tar"))
	if err != nil || len(archives) == 0 {
		return fmt.Errorf("%s: has no OCI archive of a release, make release makes them", dist)
	}
	for _, path := range archives {
		if err := publishArchive(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func publishArchive(ctx context.Context, path string) error {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := readLayout(path, dir)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	var last name.Tag
	for _, entry := range manifest.Manifests {
		tag, found, err := tagOf(entry)
		if err != nil {
			return err
		}
		var reference name.Reference = tag
		if found {
			last = tag
		} else {
			reference = last.Context().Digest(entry.Digest.String())
		}
		if err := push(ctx, index, entry, reference); err != nil {
			return err
		}
		fmt.Println("pushed", reference.Name(), entry.Digest)
	}
	return nil
}

func push(ctx context.Context, index v1.ImageIndex, entry v1.Descriptor, reference name.Reference) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if entry.MediaType.IsIndex() {
		images, err := index.ImageIndex(entry.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(reference, images, options...)
	}
	image, err := index.Image(entry.Digest)
	if err != nil {
		return err
	}
	return remote.Write(reference, image, options...)
}
