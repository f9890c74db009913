// Release makes the files of a release from a checkout of a commit:
//
//	release -version v1.2.3 -root . -commit 3aa20af... -time 1763663580 -registry ghcr.io/keyturn -out dist
//
// What the go tool has built before becomes part of it: -image is the archive that `make image` makes, and -plugin a folder with the plugin's binary
// for each platform. With a private key of cosign, whose password is in COSIGN_PASSWORD, -key signs the checksums and everything that belongs
// into a registry. The same commit makes the same files, to the byte; with the same key also the same signatures.
//
//	release publish -dist dist
//
// pushes what belongs into the registry, with the credentials that Docker has for it.
//
//	release key -out dir
//
// makes cosign.key and cosign.pub for who has no cosign.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called.
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ExitOnError)
	if len(args) > 0 {
		switch args[0] {
		case "publish":
			dist := flags.String("dist", "dist", "folder of the release")
			if err := flags.Parse(args[1:]); err != nil {
				return err
			}
			return publish(ctx, *dist)
		case "key":
			out := flags.String("out", ".", "folder for cosign.key and cosign.pub")
			if err := flags.Parse(args[1:]); err != nil {
				return err
			}
			return makeKey(*out, os.Getenv("COSIGN_PASSWORD"))
		}
	}
	var r release
	flags.StringVar(&r.version, "version", "", "version of the release, such as v1.2.3")
	flags.StringVar(&r.root, "root", ".", "checkout of the repository")
	flags.StringVar(&r.commit, "commit", "", "commit of the checkout")
	flags.StringVar(&r.registry, "registry", "", "where the release will be published, such as ghcr.io/keyturn")
	flags.StringVar(&r.out, "out", "dist", "folder of the release, which must not be there yet")
	flags.StringVar(&r.image, "image", "", "OCI archive of the image")
	flags.StringVar(&r.binaries, "plugin", "", "folder with a folder for each platform, such as darwin_arm64, that has the plugin")
	seconds := flags.Int64("time", 0, "time of the commit in seconds since 1970, which all files get")
	flags.StringVar(&r.key, "key", "", "private key of cosign, of which the checkout has the public key as cosign.pub; without one nothing is signed")
	check := flags.Bool("check", false, "only check that the version can be released")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r.time = time.Unix(*seconds, 0).UTC()
	if err := r.check(); err != nil || *check {
		return err
	}
	return r.make()
}
