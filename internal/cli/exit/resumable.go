package exit

import (
	"errors"
	"io/fs"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// NotResumable reports whether a saved upload cannot be resumed as it is: its source
// is no file, does not exist or has changed, or it is damaged or of a newer version.
// Every later run would fail in the same way. A source that cannot be read for another
// reason may be readable in the next run.
func NotResumable(err error) bool {
	noSource := errors.Is(err, ErrSource) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, chunk.ErrNotRegular))
	return noSource || errors.Is(err, session.ErrSourceChanged) || errors.Is(err, upload.ErrSourceNeeded) || errors.Is(err, upload.ErrIncomplete) ||
		errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrVersion)
}
