package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// nfpm is the tool that writes packages, pinned and outside go.mod. Since v2.46.0 it links modules
// of go.digitalxero.dev, which proxy.golang.org does not serve.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// packager writes packages of gcsup for Debian and Fedora.
type packager struct {
	tree    string    // the source of gcsup, with internal/dist/package
	pages   string    // a directory with man and completions
	license string    // the file with the licenses of all linked modules
	time    time.Time // of all files in the packages

	maintainer string // the name and the address
}

// write writes the packages with a binary to out. version is that of gcsup.
func (p packager) write(out, version, arch, binary string) (err error) {
	number, err := packageVersion(version)
	if err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "gcsup-package")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }() // the packages are complete without it
	if err := p.stage(stage, binary, number); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		cmd := exec.Command("go", "run", nfpm, "package", "--config", "nfpm.yaml", "--packager", format, "--target", out)
		cmd.Dir = stage
		cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "VERSION="+number, "ARCH="+arch, "MAINTAINER="+p.maintainer,
			"SOURCE_DATE_EPOCH="+strconv.FormatInt(p.time.Unix(), 10))
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nfpm: %w\n%s", err, text)
		}
	}
	return nil
}

// changelog returns the changelog of a version in the format of Debian.
// https://www.debian.org/doc/debian-policy/ch-source.html#debian-changelog-debian-changelog
func (p packager) changelog(version string) []byte {
	return fmt.Appendf(nil, "gcsup (%s) unstable; urgency=medium\n\n  * See docs/changelog.md in the source.\n\n -- %s  %s\n",
		version, p.maintainer, p.time.UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// stage fills a directory with the files that nfpm.yaml names.
func (p packager) stage(dir, binary, version string) error {
	type source struct {
		path, name string
		mode       fs.FileMode
	}
	files := []source{{binary, "gcsup", 0o755}, {p.license, "LICENSES.txt", 0o644}}
	for _, list := range []struct{ pattern, dir string }{
		{filepath.Join(p.tree, "internal/dist/package/*"), ""},
		{filepath.Join(p.pages, "completions/*"), "completions"},
		{filepath.Join(p.pages, "man/*.1"), "man"},
		{filepath.Join(p.pages, "man/*.7"), "man"},
	} {
		found, _ := filepath.Glob(list.pattern) // the pattern is valid
		if len(found) == 0 {
			return fmt.Errorf("no files for a package: %s", list.pattern)
		}
		for _, path := range found {
			files = append(files, source{path, filepath.Join(list.dir, filepath.Base(path)), 0o644})
		}
	}
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, f.name)
		if ext := filepath.Ext(path); ext == ".1" || ext == ".7" || ext == ".txt" {
			path += ".gz"
			content = compress(content)
		}
		if err := p.put(path, content, f.mode); err != nil {
			return err
		}
	}
	return p.put(filepath.Join(dir, "changelog.gz"), compress(p.changelog(version)), 0o644)
}

// put writes a file of the packages, and makes the directories above it.
func (p packager) put(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	if err := os.Chmod(path, mode); err != nil { // which does not depend on the umask
		return err
	}
	return os.Chtimes(path, p.time, p.time)
}

// compress returns text in the format of gzip, without a name or a time.
func compress(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                  // a Buffer returns no error
	_ = w.Close()
	return b.Bytes()
}

// writePages writes the man pages and the completions of the tree at dir to out. The tests
// write them, because package main of gcsup cannot be imported.
func writePages(dir, out string, at time.Time, log io.Writer) error {
	cmd := exec.Command("go", "test", "-count=1", "./cmd/gcsup", "-run", "^(TestManPages|TestCompletionScripts)$",
		"-man", filepath.Join(out, "man"), "-completions", filepath.Join(out, "completions"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TZ=UTC", "SOURCE_DATE_EPOCH="+strconv.FormatInt(at.Unix(), 10), "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stderr = log
	if text, err := cmd.Output(); err != nil {
		return fmt.Errorf("man pages: %w\n%s", err, text)
	}
	return nil
}
