// Image packs the programs into a container image for several platforms, as an OCI archive, without any daemon:
//
//	image -version v1.2.3 -name keyturn:v1.2.3 -binaries bin/image -out bin/keyturn.tar
//
// The folder of the binaries has one for each platform, such as linux_amd64. Commit and date are those that the go tool stamped
// into the binaries. The same binaries make the same archive, to the byte.
//
// In the archive is an image index, and for each image in it an SBOM of CycloneDX and a provenance of SLSA, as artifacts that refer
// to it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	version := flag.String("version", "", "version of the programs")
	name := flag.String("name", "", "name of the image, as a registry would have it")
	binaries := flag.String("binaries", "", "folder with a folder of binaries for each platform")
	license := flag.String("license", "", "file with the license")
	out := flag.String("out", "", "archive to write")
	flag.Parse()
	if *version == "" || *name == "" || *binaries == "" || *license == "" || *out == "" {
		return errors.New("-version, -name, -binaries, -license and -out: are required")
	}
	folders, err := filepath.Glob(filepath.Join(*binaries, "linux_*"))
	if err != nil || len(folders) == 0 {
		return fmt.Errorf("-binaries: %s has no folder linux_<architecture>", *binaries)
	}
	var builds []build
	for _, folder := range folders {
		b, err := readBuild(folder)
		if err != nil {
			return err
		}
		builds = append(builds, b)
	}
	// What differs would be two images under one name.
	for _, b := range builds[1:] {
		if b.commit != builds[0].commit {
			return fmt.Errorf("%s: is of commit %s, want %s as in %s", b.folder, b.commit, builds[0].commit, builds[0].folder)
		}
	}
	licenseText, err := os.ReadFile(*license)
	if err != nil {
		return err
	}
	return writeArchive(*out, *name, *version, builds, licenseText)
}
