package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// nfpm is the tool that writes packages, pinned and outside go.mod. Since v2.46.0 it links modules
// of go.digitalxero.dev, which proxy.golang.org does not serve.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// packager writes packages of gcsup for Debian and Fedora, from the tree in the current directory.
type packager struct {
	pages      string    // a directory with man, completions and the licenses
	version    string    // of the packages
	time       time.Time // of all files in the packages
	maintainer string    // the name and the address
}

// write writes the packages with a binary to out.
func (p packager) write(out, arch, binary string) error {
	stage, err := os.MkdirTemp("", "gcsup-package")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }() // the packages are complete without it
	if err := p.stage(stage, binary); err != nil {
		return err
	}
	env := []string{"VERSION=" + p.version, "ARCH=" + arch, "MAINTAINER=" + p.maintainer, p.epoch()}
	for _, format := range []string{"deb", "rpm"} {
		if _, err := output(stage, env, "go", "run", nfpm, "package", "--config", "nfpm.yaml", "--packager", format, "--target", out); err != nil {
			return err
		}
	}
	return nil
}

// epoch returns the time of all files, as an environment variable.
func (p packager) epoch() string { return fmt.Sprint("SOURCE_DATE_EPOCH=", p.time.Unix()) }

// changelog returns the changelog of a version in the format of Debian.
// https://www.debian.org/doc/debian-policy/ch-source.html#debian-changelog-debian-changelog
func (p packager) changelog() []byte {
	return fmt.Appendf(nil, "gcsup (%s) unstable; urgency=medium\n\n  * See docs/reference/changelog.md in the source.\n\n -- %s  %s\n",
		p.version, p.maintainer, p.time.UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// stage fills a directory with the files that nfpm.yaml names.
func (p packager) stage(dir, binary string) error {
	for _, list := range []struct{ pattern, dir string }{
		{"internal/dist/package/*", ""},
		{filepath.Join(p.pages, licensesName), ""},
		{filepath.Join(p.pages, "completions/*"), "completions"},
		{filepath.Join(p.pages, "man/*.[17]"), "man"},
	} {
		found, _ := filepath.Glob(list.pattern) // the pattern is valid
		if len(found) == 0 {
			return fmt.Errorf("no files for a package: %s", list.pattern)
		}
		for _, file := range found {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			path := filepath.Join(dir, list.dir, filepath.Base(file))
			if ext := filepath.Ext(path); ext == ".1" || ext == ".7" || ext == ".txt" {
				path, content = path+".gz", compress(content)
			}
			if err := put(path, content, 0o644); err != nil {
				return err
			}
		}
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	return cmp.Or(put(filepath.Join(dir, "gcsup"), content, 0o755), put(filepath.Join(dir, "changelog.gz"), compress(p.changelog()), 0o644))
}

// put writes a file, and makes the directories above it.
func put(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // which does not depend on the umask
}

// compress returns text in the format of gzip, without a name or a time.
func compress(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                  // a Buffer returns no error
	_ = w.Close()
	return b.Bytes()
}

// writePages writes the man pages and the completions to the directory pages. Tests of gcsup
// write them, because its package main cannot be imported.
func (p packager) writePages() error {
	_, err := output(".", []string{"TZ=UTC", p.epoch()},
		"go", "test", "-count=1", "./cmd/gcsup", "-run", "^(TestManPages|TestCompletionScripts)$",
		"-man", filepath.Join(p.pages, "man"), "-completions", filepath.Join(p.pages, "completions"))
	return err
}
