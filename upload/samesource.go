package upload

import (
	"context"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/source"
)

// sameSource checks that the file is the one with which the session began.
func (j *job) sameSource(ctx context.Context, token *state.Token) error {
	if identity := j.journal.draft.SourceIdentity; identity != "" {
		return j.sameIdentified(ctx, token, fmt.Sprintf("%q", identity))
	}
	if version := j.u.version; version != "" && token.SourceVersion != "" && token.Parts == nil {
		if version != token.SourceVersion {
			return fmt.Errorf("%w: its version is %q, that of the saved upload %q", session.ErrSourceChanged, version, token.SourceVersion)
		}
		return j.sameIdentified(ctx, token, "it")
	}
	_, shared := j.u.opts.Store.(state.Leaser)
	switch j.file.Since(token.Source, shared, imported(token)) {
	case chunk.Same:
		return nil
	case chunk.ChangeTimeOnly:
		if token.Parts != nil {
			return j.compareParts(ctx, token)
		}
		// The cause is a chmod, or an edit after which the modification time was restored.
		// Compare the bytes whose checksum is known. The service compares the others at the
		// end.
		return j.source.CompareAll(ctx, savedSource(token))
	}
	return fmt.Errorf("%w: %s is not the file that the upload began with (its size, modification time or inode differs)", session.ErrSourceChanged, token.SourcePath)
}

// sameIdentified checks a source whose bytes the caller identified, with the identity or
// the version of the saved upload. name is for the error.
func (j *job) sameIdentified(ctx context.Context, token *state.Token, name string) error {
	switch {
	case token.Source.Size != j.file.Total():
		return fmt.Errorf("%w: %s has %d bytes, the source of the saved upload %d", session.ErrSourceChanged, name, j.file.Total(), token.Source.Size)
	case token.Parts != nil:
		return j.compareParts(ctx, token)
	}
	return j.source.CompareLast(ctx, savedSource(token))
}

// savedSource returns what a Token records of the source.
func savedSource(t *state.Token) source.Saved {
	return source.Saved{Checkpoints: t.Checkpoints, Sent: t.HighWater, Compression: (*source.Compression)(t.Gzip)}
}
