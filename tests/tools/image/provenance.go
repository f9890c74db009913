package main

import (
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// provenanceType is the type of an in-toto statement, https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md.
const provenanceType = "application/vnd.in-toto+json"

// resource is a ResourceDescriptor of in-toto.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// statement is a SLSA provenance v1, https://slsa.dev/spec/v1.1/provenance. It names neither machine nor time, because builds of one
// commit are identical anywhere. Here it is not signed: a release adds an envelope with its signature.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			InternalParameters   map[string]string `json:"internalParameters"`
			ResolvedDependencies []resource        `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

// provenance returns the commit, Go version and settings of a platform's image.
func provenance(version, name string, b build, image v1.Hash) ([]byte, error) {
	s := statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       []resource{{Name: name, Digest: map[string]string{image.Algorithm: image.Hex}}},
		PredicateType: "https://slsa.dev/provenance/v1",
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = source + "/blob/main/Makefile#image"
	definition.ExternalParameters = map[string]string{"VERSION": version, "IMAGE": name, "platform": "linux/" + b.architecture}
	definition.InternalParameters = map[string]string{}
	for _, setting := range b.infos[0].Settings {
		definition.InternalParameters[setting.Key] = setting.Value
	}
	definition.ResolvedDependencies = []resource{
		{URI: "git+" + source, Digest: map[string]string{"gitCommit": b.commit.revision}},
		{URI: "pkg:golang/" + toolchain(b.infos[0]).Path + "@" + toolchain(b.infos[0]).Version},
	}
	s.Predicate.RunDetails.Builder.ID = definition.BuildType
	return json.MarshalIndent(s, "", "  ")
}
