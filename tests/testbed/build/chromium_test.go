package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTheLibrariesOfALibraryAreFound(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"usr/lib/x86_64-linux-gnu/libpulse.so.0", "usr/lib/x86_64-linux-gnu/pulseaudio/libpulsecommon-16.1.so", "usr/lib/x86_64-linux-gnu/doc/text"} {
		path := filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(root, "usr", "lib", "x86_64-linux-gnu")
	found, err := libraryFolders(root)
	if want := []string{own, filepath.Join(own, "pulseaudio")}; err != nil || !slices.Equal(found, want) {
		t.Errorf("got %q, %v; want %q", found, err, want)
	}
}

func TestThePackagesOfChromiumAreThoseThatAptNames(t *testing.T) {
	names, version := wantedPackages(`Reading package lists...
'http://deb.debian.org/debian/pool/main/c/chromium/chromium-headless-shell_156.0.8078.79-1%7edeb12u1_amd64.deb' chromium-headless-shell_156.0.8078.79-1~deb12u1_amd64.deb 64043120 SHA256:00
'http://deb.debian.org/debian/pool/main/n/nss/libnss3_3.87.1-1+deb12u4_amd64.deb' libnss3_2%3a3.87.1-1+deb12u4_amd64.deb 1330556 SHA256:00
`)
	if want := []string{chromiumPackage, "libnss3"}; !slices.Equal(names, want) || version != "156.0.8078.79-1~deb12u1" {
		t.Errorf("got %q of version %q, want %q of 156.0.8078.79-1~deb12u1", names, version, want)
	}
	if names, version := wantedPackages("E: Unable to locate package\n"); names != nil || version != "" {
		t.Errorf("of an error: got %q of version %q, want nothing", names, version)
	}
}
