package main

import (
	"bytes"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

const sbomType = "application/vnd.cyclonedx+json"

// sbom lists the modules of each program, from the build info in the binaries.
func sbom(version string, b build) ([]byte, error) {
	libraries := map[string]cyclonedx.Component{}
	var applications []cyclonedx.Component
	var dependencies []cyclonedx.Dependency
	for i, program := range programs {
		uses := []string{}
		for _, module := range append(slices.Clone(b.infos[i].Deps), toolchain(b.infos[i])) {
			if module.Replace != nil {
				module = module.Replace
			}
			purl := "pkg:golang/" + module.Path + "@" + module.Version
			libraries[purl] = cyclonedx.Component{
				BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: purl,
			}
			uses = append(uses, purl)
		}
		slices.Sort(uses)
		applications = append(applications, cyclonedx.Component{BOMRef: program, Type: cyclonedx.ComponentTypeApplication, Name: program, Version: version})
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: program, Dependencies: &uses})
	}
	components := applications
	for _, purl := range slices.Sorted(maps.Keys(libraries)) {
		components = append(components, libraries[purl])
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: b.commit.date.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "keyturn", Type: cyclonedx.ComponentTypeContainer, Name: "keyturn", Version: version,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
			ExternalReferences: &[]cyclonedx.ExternalReference{{
				Type: cyclonedx.ERTypeVCS, URL: source, Comment: b.commit.String(),
			}},
		},
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// toolchain is the standard library, under the name by which vulnerability databases know it.
func toolchain(info *debug.BuildInfo) *debug.Module {
	return &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
}
