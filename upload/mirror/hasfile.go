package mirror

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unlessDone returns the result of f. If ctx ends first, ok is false, and f may still run: a file server that
// does not respond can block it indefinitely.
func unlessDone(ctx context.Context, f func() bool) (result, ok bool) {
	done := make(chan bool, 1)
	go func() { done <- f() }()
	select {
	case result = <-done:
		return result, true
	case <-ctx.Done():
		return false, false
	}
}

// hasFile reports whether there is a file for an object, or an entry that is not a directory. The
// file system may ignore case, the service does not.
func (m *Mirror) hasFile(object string) bool {
	rel := strings.TrimPrefix(object, m.listing.Prefix)
	if path.Clean(rel) != rel || !filepath.IsLocal(filepath.FromSlash(rel)) {
		return false // no file has such an object
	}
	info, err := os.Lstat(filepath.Join(m.dir, filepath.FromSlash(rel)))
	if err != nil || info.IsDir() {
		return false
	}
	dir := m.dir
	for element := range strings.SplitSeq(rel, "/") {
		if !hasEntry(dir, element) {
			return false
		}
		dir = filepath.Join(dir, element)
	}
	return true
}

// hasEntry reports whether a directory has an entry of exactly that name, or cannot be read.
func hasEntry(dir, name string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1000)
		switch {
		case slices.Contains(names, name):
			return true
		case err == io.EOF:
			return false
		case err != nil:
			return true
		}
	}
}
