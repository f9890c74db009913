package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"
)

// The media types of a chart in a registry, https://helm.sh/docs/topics/registries.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// usualRegistry is that of the Makefile.
const usualRegistry = "ghcr.io/keyturn/"

// namingRegistry has the files of the chart that say what is published there.
var namingRegistry = []string{util.ValuesfileName, "README.md", "templates/_pod.tpl"}

// imagesAnnotation is where Artifact Hub finds the image.
const imagesAnnotation = "artifacthub.io/images"

// chart packages the chart with the registry of the release, so that its image is the default, and returns it as an artifact.
func (r release) chart() (v1.Image, error) {
	chart, err := loader.LoadDir(filepath.Join(r.root, "deploy", "chart"))
	if err != nil {
		return nil, err
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = r.bare(), r.version
	chart.ModTime, chart.SchemaModTime = r.time, r.time
	for _, file := range slices.Concat(chart.Raw, chart.Templates, chart.Files) {
		file.ModTime = r.time
		if slices.Contains(namingRegistry, file.Name) {
			file.Data = bytes.ReplaceAll(file.Data, []byte(usualRegistry), []byte(r.registry+"/"))
		}
	}
	annotations := chart.Metadata.Annotations
	annotations[imagesAnnotation] = strings.ReplaceAll(annotations[imagesAnnotation], usualRegistry, r.registry+"/")
	path, err := util.Save(chart, r.out)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(chart.Metadata)
	if err != nil {
		return nil, err
	}
	return newArtifact(chartConfig, config, chartContent, content, nil, r.annotations(chart.Metadata.Description))
}
