package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

const source = "https://github.com/keyturn/keyturn"

// release is a version of a checkout that is made into files.
type release struct {
	version, root, commit, registry, out string
	// image and binaries are what the go tool has built, if there is something.
	image, binaries string
	time            time.Time
	// key is the file of the private key, if the release is to be signed.
	key string
}

// bare returns the version as the changelog and Helm have it.
func (r release) bare() string { return strings.TrimPrefix(r.version, "v") }

// tag returns the name that something has in the registry.
func (r release) tag(repository, tag string) (name.Tag, error) {
	return name.NewTag(r.registry + "/" + repository + ":" + tag)
}

// path returns the path of a file of the release.
func (r release) path(file string) string { return filepath.Join(r.out, file) }

func (r release) write(file string, content []byte) error {
	return os.WriteFile(r.path(file), content, 0o644)
}

func copyFile(from, to string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, mode)
}

// check reports why the version cannot be released from the checkout.
func (r release) check() error {
	// References in pages are found by the same form.
	if _, err := semver.StrictNewVersion(r.bare()); err != nil || !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[a-z]+\.\d+)?$`).MatchString(r.version) {
		return fmt.Errorf("VERSION: got %q, want a version like v0.1.0 or v0.1.0-rc.1", r.version)
	}
	if r.commit == "" || r.registry == "" {
		return errors.New("-commit and -registry: are required")
	}
	chart, err := loader.LoadDir(filepath.Join(r.root, "deploy", "chart"))
	if err != nil {
		return err
	}
	if chart.Metadata.Version != r.bare() {
		return fmt.Errorf("VERSION: got %s, but this commit is of v%s: set version in deploy/chart/Chart.yaml, run `make generate` and commit",
			r.version, chart.Metadata.Version)
	}
	if _, err := r.notes(); err != nil {
		return err
	}
	if r.key != "" {
		if _, _, err := r.readKeys(); err != nil {
			return err
		}
	}
	return r.filled()
}

// make makes everything that the go tool does not, and then the checksums of all.
func (r release) make() error {
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	if r.image != "" {
		if err := copyFile(r.image, r.path(r.layout(imageLayout)), 0o644); err != nil {
			return err
		}
	}
	notes, err := r.notes()
	if err != nil {
		return err
	}
	if err := r.write("release-notes.md", notes); err != nil {
		return err
	}
	for _, made := range []struct{ file, folder string }{{"install.yaml", "base"}, {"install-namespaced.yaml", "namespaced"}} {
		manifests, err := r.manifests(made.folder)
		if err != nil {
			return err
		}
		if err := r.write(made.file, manifests); err != nil {
			return err
		}
	}
	chart, err := r.chart()
	if err != nil {
		return err
	}
	artifacts, err := r.artifacts(chart)
	if err != nil {
		return err
	}
	if err := writeLayout(r.path(r.layout(artifactsLayout)), r.time, artifacts); err != nil {
		return err
	}
	if r.binaries != "" {
		if err := r.plugin(); err != nil {
			return err
		}
	}
	checksums, err := r.checksums()
	if err != nil {
		return err
	}
	if err := r.write("checksums.txt", checksums); err != nil {
		return err
	}
	if r.key == "" {
		fmt.Println("release: nothing is signed; make release SIGNING_KEY=cosign.key signs it")
		return nil
	}
	return r.sign(checksums)
}

// What the OCI archives of a release are of.
const (
	imageLayout      = "image"
	artifactsLayout  = "artifacts"
	signaturesLayout = "signatures"
)

// layout returns the name of an OCI archive of the release.
func (r release) layout(of string) string { return "keyturn-" + r.version + "-" + of + ".tar" }
