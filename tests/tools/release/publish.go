package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// upload is something in an OCI archive of a release, with its name in the registry.
type upload struct {
	index     v1.ImageIndex
	entry     v1.Descriptor
	reference name.Reference
}

// publish pushes the OCI archives of a release to where their names say: the signatures first, because who verifies must not find anything without
// one, and the manifests and the chart last, because they name the image. What is there already is left out. If a tag is of something else, nothing
// is pushed.
func publish(ctx context.Context, dist string) error {
	var archives []string
	for _, of := range []string{signaturesLayout, imageLayout, artifactsLayout} {
		found, err := filepath.Glob(filepath.Join(dist, release{version: "v*"}.layout(of)))
		if err != nil {
			return err
		}
		archives = append(archives, found...)
	}
	if len(archives) == 0 {
		return fmt.Errorf("%s: has no OCI archive of a release, make release makes them", dist)
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var missing []upload
	for _, path := range archives {
		into := filepath.Join(dir, filepath.Base(path))
		if err := os.Mkdir(into, 0o750); err != nil {
			return err
		}
		all, err := uploads(path, into)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, one := range all {
			there, err := one.isPublished(ctx)
			if err != nil {
				return err
			}
			if !there {
				missing = append(missing, one)
			}
		}
	}
	for _, one := range missing {
		if err := one.push(ctx); err != nil {
			return err
		}
		fmt.Println("pushed", one.reference.Name(), one.entry.Digest)
	}
	if len(missing) == 0 {
		fmt.Println("the registry has it all already")
	}
	return nil
}

// uploads reads an OCI archive by way of an empty folder.
func uploads(path, dir string) ([]upload, error) {
	index, err := readLayout(path, dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var all []upload
	var last name.Tag
	for _, entry := range manifest.Manifests {
		tag, found, err := tagOf(entry)
		if err != nil {
			return nil, err
		}
		var reference name.Reference = tag
		if found {
			last = tag
		} else {
			reference = last.Context().Digest(entry.Digest.String())
		}
		all = append(all, upload{index, entry, reference})
	}
	return all, nil
}

func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// isPublished reports whether the registry has it under its name. It fails if the name is of something else, for who has verified a version must
// find the same under it ever after.
func (u upload) isPublished(ctx context.Context) (bool, error) {
	there, err := remote.Head(u.reference, options(ctx)...)
	if isAnswer(err, http.StatusForbidden) {
		there, err = u.headAfterPush(ctx)
	}
	if isAnswer(err, http.StatusNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if there.Digest != u.entry.Digest {
		return false, fmt.Errorf("%s is published already, with the digest %s instead of %s; nothing is pushed: release another version",
			u.reference.Name(), there.Digest, u.entry.Digest)
	}
	return true, nil
}

// headAfterPush asks a registry that did not say whether it has something: some forbid to read a repository that is not there, and all do it to those
// who may only push. What is pushed is without the tag, so that it replaces nothing.
func (u upload) headAfterPush(ctx context.Context) (*v1.Descriptor, error) {
	untagged := upload{u.index, u.entry, u.reference.Context().Digest(u.entry.Digest.String())}
	if err := untagged.push(ctx); err != nil {
		return nil, err
	}
	there, err := remote.Head(u.reference, options(ctx)...)
	if isAnswer(err, http.StatusForbidden) {
		return nil, fmt.Errorf("%s cannot be read, so that a published version could be replaced: log in with the right to pull, too", u.reference.Name())
	}
	return there, err
}

// isAnswer reports whether a registry has answered with a status.
func isAnswer(err error, status int) bool {
	refused, ok := errors.AsType[*transport.Error](err)
	return ok && refused.StatusCode == status
}

func (u upload) push(ctx context.Context) error {
	if u.entry.MediaType.IsIndex() {
		images, err := u.index.ImageIndex(u.entry.Digest)
		if err != nil {
			return err
		}
		return remote.WriteIndex(u.reference, images, options(ctx)...)
	}
	image, err := u.index.Image(u.entry.Digest)
	if err != nil {
		return err
	}
	return remote.Write(u.reference, image, options(ctx)...)
}
