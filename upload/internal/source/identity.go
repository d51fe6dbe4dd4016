package source

import (
	"context"
	"fmt"
	"time"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/session"
)

// settlingAfter is the time after which Settle calls slow.
const settlingAfter = 200 * time.Millisecond

// original is the bytes of a source, and what shows whether they are still the same.
type original struct {
	readable
	identity chunk.Identity // of the bytes that were read
	copied   bool           // the session began with another file; the bytes must still be compared
	settled  bool           // every later change changes the identity, with these exceptions:
	unsynced bool           // see sourcefile.Settled
	racy     bool           // see sourcefile.Settled; identity has no change time
}

// Identity returns the identity of the bytes that were read. It has no change time if a
// change may not be detectable.
func (o *original) Identity() chunk.Identity { return o.identity }

// Settle ensures, as far as possible, that every later change of the file changes its
// identity. It records the identity. slow is called if that takes long.
func (o *original) Settle(ctx context.Context, slow func()) error {
	if o.settled {
		return nil
	}
	called := make(chan struct{})
	timer := time.AfterFunc(settlingAfter, func() {
		slow()
		close(called)
	})
	s, err := o.src.Settle(ctx)
	if !timer.Stop() {
		<-called
	}
	if err == nil && s.Identity.Size != o.Total() {
		err = fmt.Errorf("%w: its size was %d bytes when it was opened, and is %d", session.ErrSourceChanged, o.Total(), s.Identity.Size)
	}
	if err != nil {
		return err
	}
	o.settled, o.unsynced, o.racy = true, s.Unsynced, s.Racy
	o.remember(s.Identity)
	return nil
}

// noteRacy records whether the file is racy, for a file that is not settled.
func (o *original) noteRacy() {
	o.racy = o.racy || o.src.Racy(o.identity)
	o.remember(o.identity)
}

// remember sets the identity. For a racy file it removes the change time, so that
// each resume compares the bytes.
func (o *original) remember(id chunk.Identity) {
	if o.racy {
		id.ChangeTimeNS = 0
	}
	o.identity = id
}

// Since reports how the file differs from the one that an earlier process sent. If
// shared is set, that was possibly on another machine. If imported is set, the file is
// possibly a copy. ChangeTimeOnly means that the bytes must be compared.
func (o *original) Since(was chunk.Identity, shared, imported bool) sourcefile.Change {
	earlier := was
	if shared {
		earlier.Device = o.identity.Device // machines have different numbers for the same file server
	}
	change := sourcefile.Compare(earlier, o.identity)
	if imported || shared && change != sourcefile.Same {
		// It may be a copy on another machine.
		o.copied = true
		if was.Size == o.identity.Size {
			change = sourcefile.ChangeTimeOnly
		}
	}
	if change == sourcefile.Same && (was.ChangeTimeNS == 0 || o.unsynced) {
		// The times may not show a change: the platform has no change time, the file was
		// racy, or it cannot be synced.
		change = sourcefile.ChangeTimeOnly
	}
	return change
}

// Copied reports whether the session began with another file, and the bytes must still
// be compared.
func (o *original) Copied() bool { return o.copied }

// Proven records that all bytes which were sent are those of the file.
func (o *original) Proven() { o.copied = false }

// Unchanged returns an error if the file has changed since its first bytes were hashed.
// If the file is racy, or only the change time differs, it compares the bytes: a chmod
// changes the change time, and so does an edit after which the modification time was
// restored. It calls hashed, which returns their checksum, after it has read the identity.
func (o *original) Unchanged(ctx context.Context, hashed func() chunk.Checkpoint) error {
	now, err := o.src.Identity()
	if err != nil {
		return err
	}
	change := sourcefile.Compare(o.identity, now)
	if change == sourcefile.Same && o.racy {
		change = sourcefile.ChangeTimeOnly
	}
	switch change {
	case sourcefile.Same:
		return nil
	case sourcefile.ChangeTimeOnly:
		if err := o.compare(ctx, chunk.Checkpoint{}, hashed()); err != nil {
			return err
		}
		o.remember(now)
		return nil
	}
	return fmt.Errorf("%w: its size or modification time has changed", session.ErrSourceChanged)
}

// CopyDiffers is the error for a copy of a source that differs from the source, as
// the server's checksum shows.
type CopyDiffers struct{ error }

func (e *CopyDiffers) Unwrap() error { return e.error }
