package main

import (
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const source = "https://github.com/keyturn/keyturn"

// annotations say where an image comes from, by the names that the OCI has for it.
func annotations(version string, c commit) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         "keyturn",
		"org.opencontainers.image.description":   "Restarts the workloads that use a Secret or ConfigMap when its content has changed.",
		"org.opencontainers.image.source":        source,
		"org.opencontainers.image.url":           source,
		"org.opencontainers.image.documentation": source + "/blob/main/docs/how-to/install.md",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       version,
		"org.opencontainers.image.revision":      c.revision,
		"org.opencontainers.image.created":       c.date.UTC().Format(time.RFC3339),
	}
}

// image returns the image of one platform: the common base, and the programs above it.
func image(b build, base v1.Layer, notes map[string]string) (v1.Image, error) {
	files, err := programFiles(b)
	if err != nil {
		return nil, err
	}
	top, err := layer(files, b.commit.date)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: b.commit.date.UTC()}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS: "linux", Architecture: b.architecture, Created: created,
		// Reloader's chart gives its image arguments and no command.
		Config: v1.Config{
			User: user + ":" + user, WorkingDir: "/", Env: []string{"PATH=/usr/local/bin"}, Entrypoint: []string{"keyturn", "reloader"}, Labels: notes,
		},
		RootFS: v1.RootFS{Type: "layers"},
	}); err != nil {
		return nil, err
	}
	if img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "certificate authorities, user and license"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: created, CreatedBy: strings.Join(programs, ", ")}},
	); err != nil {
		return nil, err
	}
	return mutate.Annotations(img, notes).(v1.Image), nil
}

// compressed returns the size of the layers of an image, as a registry has them.
func compressed(img v1.Image) (int64, error) {
	layers, err := img.Layers()
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}
