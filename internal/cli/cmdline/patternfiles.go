package cmdline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"gcsup/internal/cli/exit"
	"gcsup/upload/tree"
)

// Stdin returns standard input, or an error if it cannot be read.
type Stdin func() (io.Reader, error)

// stdin is the name of standard input in place of a file.
const stdin = "-"

// open opens the file that a flag names.
func (in Stdin) open(flag, name string) (io.ReadCloser, error) {
	switch name {
	case "":
		return nil, exit.Usagef("--%s: want the name of a file", flag)
	case stdin:
		r, err := in()
		return io.NopCloser(r), err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, unreadable(flag, err)
	}
	return file, nil
}

// unreadable returns the error for a file that a flag names.
func unreadable(flag string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", pe.Path, pe.Err)
	}
	return exit.WithKind(fmt.Errorf("--%s: %w", flag, err), exit.ErrSource)
}

// patterns returns the patterns of a flag, and those in the files of the flag with the suffix
// -from.
func (in Stdin) patterns(flag string, given, files []string) ([]string, error) {
	all := given[:len(given):len(given)]
	flag += "-from"
	for _, name := range files {
		r, err := in.open(flag, name)
		if err != nil {
			return nil, err
		}
		patterns, err := tree.ReadPatterns(r)
		_ = r.Close()
		switch {
		case errors.Is(err, tree.ErrUsage):
			return nil, fmt.Errorf("--%s %s: %w", flag, name, err)
		case err != nil:
			return nil, unreadable(flag, fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, patterns...)
	}
	return all, nil
}
