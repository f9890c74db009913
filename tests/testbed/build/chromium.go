package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ErrNoChromium is returned if there is no Chromium, and none can be fetched that starts.
var ErrNoChromium = errors.New("there is no Chromium in PATH, and no apt-get")

// Browser is a Chromium. Env has the environment variables that it needs.
type Browser struct {
	Path string
	Env  []string
}

// Chromium returns the browser that CHROMIUM_BIN names, or that is in PATH, or Debian's package of it in the cache folder. If necessary, the
// package is fetched first, with missing libraries, which does not need root; progress goes to log. It cannot be built, because it is not a Go
// module.
func Chromium(ctx context.Context, log io.Writer) (Browser, error) {
	for _, name := range []string{os.Getenv("CHROMIUM_BIN"), "chromium", "chromium-headless-shell", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return Browser{Path: path}, nil
		}
	}
	dir, err := cacheDir("chromium")
	if err != nil {
		return Browser{}, err
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return Browser{}, err
	}
	defer unlock()
	if found, err := unpacked(ctx, dir); err == nil {
		return found, nil // a later image may lack libraries that the one that fetched it had
	}
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return Browser{}, ErrNoChromium
		}
	}
	if err := fetchChromium(ctx, log, dir); err != nil {
		return Browser{}, fmt.Errorf("%w that fetches one: %w", ErrNoChromium, err)
	}
	found, err := unpacked(ctx, dir)
	if err != nil {
		return Browser{}, fmt.Errorf("%w that fetches one that starts: %w", ErrNoChromium, err)
	}
	return found, nil
}

// unpacked returns the newest browser in the cache folder that starts.
func unpacked(ctx context.Context, dir string) (Browser, error) {
	found, err := filepath.Glob(filepath.Join(dir, chromiumPackage+"_*", "usr", "lib", "chromium", chromiumPackage))
	if err != nil || len(found) == 0 {
		return Browser{}, errors.Join(ErrNoChromium, err)
	}
	path := found[len(found)-1]
	root := strings.TrimSuffix(path, filepath.Join("/usr", "lib", "chromium", chromiumPackage))
	libraries, err := libraryFolders(root)
	b := Browser{Path: path, Env: []string{
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"), "FONTCONFIG_FILE=" + filepath.Join(root, "fonts.conf"),
	}}
	version := exec.CommandContext(ctx, path, "--version")
	version.Env = append(os.Environ(), b.Env...)
	_, failed := process.Capture(version)
	return b, errors.Join(err, failed)
}

// libraryFolders returns the folders with the libraries of unpacked packages: those that the linker searches, and those that a library such as
// pulseaudio refers to by the path that they would have if they were installed.
func libraryFolders(root string) ([]string, error) {
	var folders []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu*/*.so*", "lib/*-linux-gnu*/*.so*", "usr/lib/*-linux-gnu*/*/*.so*"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if folder := filepath.Dir(file); !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders, nil
}

// The packages: Chromium without windows, and a font, without which a page has no text.
const (
	chromiumPackage = "chromium-headless-shell"
	fontPackage     = "fonts-dejavu-core"
)

// fontsConfig has the folders of fonts: those of the machine, and that of the package.
const fontsConfig = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>%s/usr/share/fonts</dir><cachedir>%s/fontcache</cachedir></fontconfig>
`

// fetchChromium downloads and unpacks the package, and those of its dependencies that the machine does not have. apt-get uses separate folders
// for its lists, and changes nothing on the machine.
func fetchChromium(ctx context.Context, log io.Writer, dir string) error {
	start := time.Now()
	fmt.Fprintln(log, "testbed: fetching Debian's Chromium (once, about 100 MB and half a minute)")
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, folder := range []string{"state/lists/partial", "cache/archives/partial", "root", "debs"} {
		if err := os.MkdirAll(filepath.Join(work, folder), 0o755); err != nil {
			return err
		}
	}
	apt := func(in string, args ...string) (string, error) {
		options := []string{
			"-o", "Dir::State=" + filepath.Join(work, "state"), "-o", "Dir::State::status=/var/lib/dpkg/status",
			"-o", "Dir::Cache=" + filepath.Join(work, "cache"), "-o", "APT::Sandbox::User=root", "-qq",
		}
		cmd := exec.CommandContext(ctx, "apt-get", append(options, args...)...)
		cmd.Dir = filepath.Join(work, in)
		out, err := process.Capture(cmd)
		return string(out), err
	}
	if _, err := apt("", "update"); err != nil {
		return err
	}
	listed, err := apt("", "install", "--print-uris", "--no-install-recommends", "-y", chromiumPackage, fontPackage)
	if err != nil {
		return err
	}
	names, version := wantedPackages(listed)
	if version == "" {
		return fmt.Errorf("apt-get names no %s: %s", chromiumPackage, listed)
	}
	if _, err := apt("debs", append([]string{"download"}, names...)...); err != nil {
		return err
	}
	root := filepath.Join(work, "root")
	packages, err := filepath.Glob(filepath.Join(work, "debs", "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range packages {
		if _, err := process.Capture(exec.CommandContext(ctx, "dpkg-deb", "-x", file, root)); err != nil {
			return err
		}
	}
	final := filepath.Join(dir, chromiumPackage+"_"+version)
	if err := os.WriteFile(filepath.Join(root, "fonts.conf"), fmt.Appendf(nil, fontsConfig, final, final), 0o600); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(final), os.Rename(root, final)); err != nil {
		return err
	}
	fmt.Fprintf(log, "testbed: fetched Chromium %s in %.0fs\n", version, time.Since(start).Seconds())
	return nil
}

// wantedPackages returns the packages in the output of apt-get --print-uris, and the version of Chromium. A line is
// 'http://…' <name>_<version>_<architecture>.deb <size> <sum>.
func wantedPackages(listed string) (names []string, version string) {
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(line, "'") {
			continue
		}
		parts := strings.Split(fields[1], "_")
		names = append(names, parts[0])
		if parts[0] == chromiumPackage && len(parts) > 1 {
			version = parts[1]
		}
	}
	return names, version
}
