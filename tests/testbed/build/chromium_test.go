package build

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
