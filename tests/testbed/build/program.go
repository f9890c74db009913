package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"path/filepath"
)

// Program builds a main package of the root module, such as "./cmd/actuator", with the race detector if race is true, and returns the path
// of the binary. The path is the same each time, and only what has changed is compiled. It is built as for a release, but for the race detector.
func Program(ctx context.Context, pkg string, race bool) (string, error) {
	root, err := moduleDir(ctx, ".", modulePath)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	args := append(buildFlags(), "-ldflags=-s -w")
	name, env := path.Base(pkg), "CGO_ENABLED=0"
	if race {
		name, args, env = name+"-race", append(args, "-race"), "CGO_ENABLED=1"
	}
	dir, err := programsDir(root)
	if err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, filepath.Join(dir, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	binary := filepath.Join(dir, name)
	if err := goBuild(ctx, nil, root, binary, pkg, args, env); err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	return binary, nil
}

// programsDir returns the folder for the programs of a checkout. Each checkout has its own, because two on one machine must
// not overwrite each other's programs.
func programsDir(root string, elem ...string) (string, error) {
	checkout := sha256.Sum256([]byte(root))
	return cacheDir(append([]string{"programs", hex.EncodeToString(checkout[:6])}, elem...)...)
}
