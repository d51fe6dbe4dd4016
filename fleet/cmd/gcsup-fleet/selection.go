package main

import (
	"encoding/json"
	"errors"
	"path/filepath"

	"gcsup/internal/cli/cmdline"
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
func newSelection(sources []string, f *cmdline.TreeFlags, opts *tree.Options, manifest string) (selection, error) {
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
