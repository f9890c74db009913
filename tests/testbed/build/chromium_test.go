package build

import (
	"slices"
	"testing"
)

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
