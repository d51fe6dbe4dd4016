package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/treeflags"
	"gcsup/upload/tree"
)

// selection is what chooses the files of a submission. Two submissions with different ones have different files, so
// that the second does not replace the record of the first.
type selection struct {
	Sources  []string // absolute
	List     string   // digest of the list of --files-from; its name does not matter
	Dir      string   // of -C, absolute
	Include  []string // patterns, including those in files
	Exclude  []string
	Limits   []string // of size and age, as given: a later submit with the same age is the same submission
	Follow   bool
	Ignore   bool
	Manifest string // absolute
}

// newSelection returns the selection of flags without a list. opts are the options of f.
func newSelection(sources []string, f *treeflags.Flags, opts *tree.Options, manifest string) (selection, error) {
	s := selection{Include: opts.Include, Exclude: opts.Exclude, Limits: f.Limits(), Follow: f.FollowSymlinks, Ignore: f.IgnoreSymlinks}
	var errs []error
	abs := func(path string) string {
		if path == "" {
			return ""
		}
		path, err := filepath.Abs(path)
		errs = append(errs, err)
		return path
	}
	for _, source := range sources {
		s.Sources = append(s.Sources, abs(source))
	}
	s.Dir, s.Manifest = abs(f.Dir), abs(manifest)
	return s, errors.Join(errs...)
}

// name returns a name for a submission of s.
func (s *selection) name() (string, error) {
	data, err := json.Marshal(s)
	return string(data), err
}

// pathList is the list of --files-from. It is copied to a temporary file, because its digest is a part of the name
// of the submission, and standard input can be read only once.
type pathList struct {
	in   io.ReadCloser
	copy *os.File // nil until read is called
}

// read reads the list, and returns its digest.
func (l *pathList) read() (digest string, err error) {
	if l.copy, err = os.CreateTemp("", "gcsup-fleet-list-*"); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(l.copy, h), l.in); err != nil {
		return "", failure.WithKind(fmt.Errorf("--files-from: %w", err), failure.ErrSource)
	}
	_, err = l.copy.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

// Read reads the copy.
func (l *pathList) Read(p []byte) (int, error) { return l.copy.Read(p) }

// Close closes the list and deletes the copy.
func (l *pathList) Close() error {
	if l.copy != nil {
		_ = l.copy.Close()
		_ = os.Remove(l.copy.Name())
	}
	return l.in.Close()
}
