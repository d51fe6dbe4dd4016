package main

import (
	"errors"
	"fmt"
	"io/fs"

	"gcsup/chunk"
	"gcsup/internal/cli/failure"
	"gcsup/internal/cli/hint"
	"gcsup/internal/cli/program"
)

// sourceError marks err with failure.ErrSource if it is a file system error of the
// source at path. Errors of the source and of the state directory differ only in
// the path.
func sourceError(err error, path string) error {
	pe, ok := errors.AsType[*fs.PathError](err)
	if !ok || pe.Path != path || errors.Is(err, chunk.ErrRead) || errors.Is(err, failure.ErrSource) {
		return err
	}
	return failure.WithKind(fmt.Errorf("%s: %w", path, pe.Err), failure.ErrSource)
}

// withHint adds advice for the user to err. endpoint is the endpoint in use, or "".
func withHint(err error, endpoint string) error {
	return hint.Add(err, endpointText(endpoint), program.Words())
}
