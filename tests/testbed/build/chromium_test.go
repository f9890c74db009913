package build

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
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
		testkit.WriteProgram(t, filepath.Join(bin, name), "#!/bin/sh\n"+script+"\n")
	}
	t.Setenv("PATH", bin)
	t.Setenv("CHROMIUM_BIN", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := Chromium(t.Context(), io.Discard); !errors.Is(err, ErrNoChromium) || !strings.Contains(err.Error(), "that starts: ") {
		t.Errorf("got %v, want %v that starts", err, ErrNoChromium)
	}
}
