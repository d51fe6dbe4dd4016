// Command dist builds the files of a release into a directory: static binaries of gcsup
// and fakegcs with a software bill of materials for each platform, man pages, completions,
// packages for Debian and Fedora, the licenses of the linked modules, and SHA256SUMS.
//
//	go run ./internal/dist [-o DIR] [-version VERSION] [-targets OS/ARCH,...] [-sign-key FILE]
//	go run ./internal/dist -binaries [-o DIR] [-version VERSION] [-targets OS/ARCH,...]
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// The platforms of a release.
	all = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

	// The names of its files.
	licensesName  = "LICENSES.txt"
	sumsName      = "SHA256SUMS"
	signatureName = sumsName + ".minisig"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("dist: ")
	var b builder
	b.version, b.revision = describe()
	flag.StringVar(&b.version, "version", b.version, "stamp this `version`")
	flag.BoolVar(&b.onlyBinaries, "binaries", false, "write no man pages, completions and packages")
	out := flag.String("o", "dist", "write to this `directory`")
	targets := flag.String("targets", "all", "build for these platforms of "+all)
	key := flag.String("sign-key", "", "sign SHA256SUMS with minisign and the secret key in this `file`")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	b.targets = strings.Split(strings.ReplaceAll(*targets, "all", all), ",")
	if err := b.release(*out, *key); err != nil {
		log.Fatal(err)
	}
}

type builder struct {
	version, revision string // what a binary prints
	targets           []string
	onlyBinaries      bool
}

// release builds a release into out, and signs it if key is not empty. It checks all arguments
// first, because the compilation takes minutes.
func (b builder) release(out, key string) error {
	for _, target := range b.targets {
		if !slices.Contains(strings.Split(all, ","), target) {
			return fmt.Errorf("unknown platform %q; want some of %s", target, all)
		}
	}
	p, err := newPackager(b.version)
	if err != nil && !b.onlyBinaries {
		return err
	}
	if key != "" {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := b.build(out, p); err != nil || key == "" {
		return err
	}
	return sign(key, filepath.Join(out, sumsName), "gcsup "+b.version)
}

// newPackager returns a packager of the tree in the current directory. The time of the files is that
// of SOURCE_DATE_EPOCH, or of the last commit.
func newPackager(version string) (p packager, err error) {
	p.maintainer = cmp.Or(os.Getenv("MAINTAINER"), git("log", "-1", "--format=%an <%ae>"), "The gcsup authors <gcsup@example.com>")
	if p.version, err = packageVersion(version); err != nil {
		return p, err
	}
	seconds, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), git("log", "-1", "--format=%ct"), "0"), 10, 64)
	if err != nil {
		return p, fmt.Errorf("SOURCE_DATE_EPOCH: want the seconds since 1970: %w", err)
	}
	p.time = time.Unix(seconds, 0).UTC()
	return p, nil
}

// build builds the tree in the current directory into out.
func (b builder) build(out string, p packager) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	modules := map[string]string{} // the directories of those that are linked, by name and version
	for _, target := range b.targets {
		log.Print(target)
		if err := b.binaries(out, target, modules); err != nil {
			return err
		}
	}
	p.pages = out
	if err := writeLicenses(filepath.Join(out, licensesName), modules); err != nil {
		return err
	}
	if b.onlyBinaries {
		return writeSums(out)
	}
	log.Print("man pages and completions")
	if err := p.writePages(); err != nil {
		return err
	}
	for _, target := range b.targets {
		if arch, ok := strings.CutPrefix(target, "linux/"); ok {
			log.Print("packages for ", target)
			if err := p.write(out, arch, b.path(out, "gcsup", target)); err != nil {
				return err
			}
		}
	}
	return writeSums(out)
}

// output runs a command in a directory, with env added to the environment, and returns what it
// prints. The go command builds for this machine, unless env has another platform.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH), env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, args[0], err, out, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
