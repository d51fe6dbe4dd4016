package main

import (
	"errors"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gcsup/upload"
)

// gzipFlag is --gzip: the extensions of the files to compress, in lower case and
// with the dot.
type gzipFlag []string

// gzipAll is the value of --gzip for all files.
const gzipAll = "all"

func (f *gzipFlag) Type() string   { return "EXT,..." }
func (f *gzipFlag) String() string { return strings.Join(*f, ",") }

// Set replaces the extensions, so that those of the command line replace those of
// the environment.
func (f *gzipFlag) Set(text string) error {
	var extensions []string
	for ext := range strings.SplitSeq(text, ",") {
		ext = strings.ToLower(strings.TrimPrefix(ext, "."))
		bad := func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`/\*?[]{}`, r)
		}
		if ext == "" || strings.HasPrefix(ext, ".") || strings.HasSuffix(ext, ".") || strings.ContainsFunc(ext, bad) {
			return errors.New("want extensions separated by commas, such as txt,csv, or all")
		}
		extensions = append(extensions, "."+ext)
	}
	if len(extensions) > 1 && slices.Contains(extensions, "."+gzipAll) {
		return errors.New("want extensions separated by commas, such as txt,csv, or all alone")
	}
	*f = extensions
	return nil
}

// compresses reports whether a source is compressed. For standard input, the
// extension is that of the object.
func (f gzipFlag) compresses(source, object string) bool {
	name := filepath.Base(source)
	if source == stdinName {
		name = path.Base(object)
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(f, func(ext string) bool { return ext == "."+gzipAll || strings.HasSuffix(name, ext) })
}

// withGzip sets for each job whether its file is compressed.
func withGzip(jobs iter.Seq[upload.Job], f gzipFlag) iter.Seq[upload.Job] {
	if len(f) == 0 {
		return jobs
	}
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			job.Spec.Gzip = f.compresses(job.Path, job.Spec.Object)
			if !yield(job) {
				return
			}
		}
	}
}
