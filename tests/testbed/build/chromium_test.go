package build

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestABrowserThatDoesNotStartIsNone(t *testing.T) {
	bin := t.TempDir()
	for name, script := range map[string]string{
		"apt-get": `case "$*" in
*print-uris*) echo "'http://deb.example.com/c.deb' chromium-headless-shell_1_amd64.deb 1 SHA256:00" ;;
*download*) : > c.deb ;;
esac`,
		"dpkg-deb": `/bin/mkdir -p "$3/usr/lib/chromium"
echo 'exit 127' > "$3/usr/lib/chromium/chromium-headless-shell"
/bin/chmod +x "$3/usr/lib/chromium/chromium-headless-shell"`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	t.Setenv("CHROMIUM_BIN", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := Chromium(t.Context(), io.Discard); !errors.Is(err, ErrNoChromium) || !strings.Contains(err.Error(), "that starts: ") {
		t.Errorf("got %v, want %v that starts", err, ErrNoChromium)
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
