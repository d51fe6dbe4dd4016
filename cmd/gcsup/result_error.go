package main

import (
	"errors"
	"fmt"
	"io/fs"

	"gcsup/chunk"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// sourceError marks err with exit.ErrSource if it is a file system error of the
// source at path. Errors of the source and of the state directory differ only in
// the path.
func sourceError(err error, path string) error {
	pe, ok := errors.AsType[*fs.PathError](err)
	if !ok || pe.Path != path || errors.Is(err, chunk.ErrRead) || errors.Is(err, exit.ErrSource) {
		return err
	}
	return exit.WithKind(fmt.Errorf("%s: %w", path, pe.Err), exit.ErrSource)
}

// withHint adds advice for the user to err. endpoint is the endpoint in use, or "".
func withHint(err error, endpoint string) error {
	return exit.WithHint(err, endpointText(endpoint), process.Words())
}
