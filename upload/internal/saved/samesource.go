package saved

import (
	"fmt"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
)

// Doubt is what must be compared before a saved upload continues.
type Doubt int

const (
	NoDoubt   Doubt = iota // nothing: the source is that of the saved upload
	LastBytes              // the bytes between the last two checkpoints
	AllBytes               // all bytes whose checksum is known; the service compares the others at the end
)

// SameSource compares a source of size bytes with that of the saved upload t, and returns what
// else must be compared. since is as in package source. If the sources differ, the error wraps
// [session.ErrSourceChanged].
func (j *Journal) SameSource(t *state.Upload, size int64, since func(was chunk.Identity, shared, imported bool) sourcefile.Change) (Doubt, error) {
	version, identity := j.draft.SourceVersion, j.draft.SourceIdentity
	identified := version != "" && t.SourceVersion != "" && t.Parts == nil
	name := "it"
	switch {
	case identity != "":
		name = fmt.Sprintf("%q", identity)
	case identified && version != t.SourceVersion:
		return 0, fmt.Errorf("%w: its version is %q, that of the saved upload %q", session.ErrSourceChanged, version, t.SourceVersion)
	case !identified:
		_, shared := j.store.(state.Leaser)
		switch since(t.Source, shared, imported(t)) {
		case sourcefile.Same:
			return NoDoubt, nil
		case sourcefile.ChangeTimeOnly:
			return AllBytes, nil // a chmod, or an edit after which the modification time was restored
		}
		return 0, fmt.Errorf("%w: %s is not the file that the upload began with (its size, modification time or inode differs)", session.ErrSourceChanged, t.SourcePath)
	}
	if t.Source.Size != size {
		return 0, fmt.Errorf("%w: %s has %d bytes, the source of the saved upload %d", session.ErrSourceChanged, name, size, t.Source.Size)
	}
	return LastBytes, nil
}

// imported reports whether Import or TakeOver saved the saved upload, and it was not resumed
// since. Of the source, it then has only the size.
func imported(t *state.Upload) bool {
	return t.SourceIdentity == "" && t.Source == chunk.Identity{Size: t.Source.Size}
}
