package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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

// localImage is the line of values.yaml that has the name of an image built from the checkout.
var localImage = []byte("\n  repository: keyturn\n")

// chart packages the chart with the image of the release as its default, and returns it as an artifact.
func (r release) chart() (v1.Image, error) {
	chart, err := loader.LoadDir(filepath.Join(r.root, "deploy", "chart"))
	if err != nil {
		return nil, err
	}
	image, err := r.tag("keyturn", r.version)
	if err != nil {
		return nil, err
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = r.bare(), r.version
	chart.ModTime, chart.SchemaModTime = r.time, r.time
	for _, file := range slices.Concat(chart.Raw, chart.Templates, chart.Files) {
		file.ModTime = r.time
		if file.Name == util.ValuesfileName {
			if bytes.Count(file.Data, localImage) != 1 {
				return nil, fmt.Errorf("deploy/chart/values.yaml: want one line %q", bytes.TrimSpace(localImage))
			}
			file.Data = bytes.Replace(file.Data, localImage, fmt.Appendf(nil, "\n  repository: %s\n", image.Repository), 1)
		}
	}
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
