package upload

import (
	"context"
	"fmt"

	"gcsup/chunk"
	"gcsup/session"
)

// sameSource checks that the file is the one with which the session began.
func (j *job) sameSource(ctx context.Context, token *session.Token) error {
	if identity := j.journal.draft.SourceIdentity; identity != "" {
		return j.sameIdentified(ctx, token, fmt.Sprintf("%q", identity))
	}
	if version := j.u.expect.version; version != "" && token.SourceVersion != "" && token.Parts == nil {
		if version != token.SourceVersion {
			return fmt.Errorf("%w: its version is %q, that of the saved upload %q", session.ErrSourceChanged, version, token.SourceVersion)
		}
		return j.sameIdentified(ctx, token, "it")
	}
	was := token.Source
	_, shared := j.u.opts.Store.(session.Leaser)
	if shared {
		was.Device = j.file.identity.Device // machines have different numbers for the same file server
	}
	change := was.Compare(j.file.identity)
	if imported(token) || shared && change != chunk.Same {
		// It may be a copy on another machine.
		j.file.copied = true
		if token.Source.Size == j.file.identity.Size {
			change = chunk.ChangeTimeOnly
		}
	}
	if change == chunk.Same && (token.Source.ChangeTimeNS == 0 || j.file.unsynced) {
		// The times may not show a change: the platform has no change time, the file was
		// racy, or it cannot be synced.
		change = chunk.ChangeTimeOnly
	}
	switch change {
	case chunk.Same:
		return nil
	case chunk.ChangeTimeOnly:
		if token.Parts != nil {
			return j.compareParts(ctx, token)
		}
		// The cause is a chmod, or an edit after which the modification time was restored.
		// Compare the bytes whose checksum is known. The service compares the others at the
		// end.
		if token.Gzip == nil {
			return j.file.compare(ctx, token.Checkpoints...)
		}
		err := j.file.compare(ctx, token.Gzip.Source)
		if err == nil {
			j.file.copied = false // this comparison covers all bytes that were sent
		}
		return err
	}
	return fmt.Errorf("%w: %s is not the file that the upload began with (its size, modification time or inode differs)", session.ErrSourceChanged, token.SourcePath)
}

// sameIdentified checks a source whose bytes the caller identified, with the identity or
// the version of the saved upload. name is for the error.
func (j *job) sameIdentified(ctx context.Context, token *session.Token, name string) error {
	switch {
	case token.Source.Size != j.file.src.Size():
		return fmt.Errorf("%w: %s has %d bytes, the source of the saved upload %d", session.ErrSourceChanged, name, j.file.src.Size(), token.Source.Size)
	case token.Parts != nil:
		return j.compareParts(ctx, token)
	case token.Gzip != nil:
		return nil // every checkpoint is compared
	}
	return j.file.compareLast(ctx, token.Checkpoints)
}
