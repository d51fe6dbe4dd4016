package source

import (
	"context"
	"fmt"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// settlingAfter is the time after which Settle calls slow.
const settlingAfter = 200 * time.Millisecond

// Settle ensures, as far as possible, that every later change of the file changes its
// identity. It records the identity. slow is called if that takes long.
func (f *File) Settle(ctx context.Context, slow func()) error {
	if f.settled {
		return nil
	}
	called := make(chan struct{})
	timer := time.AfterFunc(settlingAfter, func() {
		slow()
		close(called)
	})
	s, err := f.src.Settle(ctx)
	if !timer.Stop() {
		<-called
	}
	if err == nil && s.Identity.Size != f.Total() {
		err = fmt.Errorf("%w: its size was %d bytes when it was opened, and is %d", session.ErrSourceChanged, f.Total(), s.Identity.Size)
	}
	if err != nil {
		return err
	}
	f.settled, f.unsynced, f.racy = true, s.Unsynced, s.Racy
	f.remember(s.Identity)
	return nil
}

// noteRacy records whether the file is racy, for a file that is not settled.
func (f *File) noteRacy() {
	f.racy = f.racy || f.src.Racy(f.identity)
	f.remember(f.identity)
}

// remember sets the identity. For a racy file it removes the change time, so that
// each resume compares the bytes.
func (f *File) remember(id chunk.Identity) {
	if f.racy {
		id.ChangeTimeNS = 0
	}
	f.identity = id
}

// Since reports how the file differs from the one that an earlier process sent. If
// shared is set, that was possibly on another machine. If imported is set, the file is
// possibly a copy. ChangeTimeOnly means that the bytes must be compared.
func (f *File) Since(was chunk.Identity, shared, imported bool) chunk.Change {
	earlier := was
	if shared {
		earlier.Device = f.identity.Device // machines have different numbers for the same file server
	}
	change := earlier.Compare(f.identity)
	if imported || shared && change != chunk.Same {
		// It may be a copy on another machine.
		f.copied = true
		if was.Size == f.identity.Size {
			change = chunk.ChangeTimeOnly
		}
	}
	if change == chunk.Same && (was.ChangeTimeNS == 0 || f.unsynced) {
		// The times may not show a change: the platform has no change time, the file was
		// racy, or it cannot be synced.
		change = chunk.ChangeTimeOnly
	}
	return change
}

// Copied reports whether the session began with another file, and the bytes must still
// be compared.
func (f *File) Copied() bool { return f.copied }

// Proven records that all bytes which were sent are those of the file.
func (f *File) Proven() { f.copied = false }

// Unchanged returns an error if the file has changed since its first bytes were hashed.
// If the file is racy, or only the change time differs, it compares the bytes: a chmod
// changes the change time, and so does an edit after which the modification time was
// restored. It calls hashed, which returns their checksum, after it has read the identity.
func (f *File) Unchanged(ctx context.Context, hashed func() chunk.Checkpoint) error {
	now, err := f.src.Identity()
	if err != nil {
		return err
	}
	change := f.identity.Compare(now)
	if change == chunk.Same && f.racy {
		change = chunk.ChangeTimeOnly
	}
	switch change {
	case chunk.Same:
		return nil
	case chunk.ChangeTimeOnly:
		if err := f.compare(ctx, chunk.Checkpoint{}, hashed()); err != nil {
			return err
		}
		f.remember(now)
		return nil
	}
	return fmt.Errorf("%w: its size or modification time has changed", session.ErrSourceChanged)
}

// hashed returns the checksum of the bytes that sum has hashed. While a file is being
// compressed, bytes are still written to sum.
func (f *File) hashed() chunk.Checkpoint {
	c, _ := f.sum.Nearest(f.sum.Offset())
	return c
}

func (f *File) CompareAll(ctx context.Context, s Saved) error {
	return f.compare(ctx, chunk.Checkpoint{}, s.Checkpoints...)
}

func (f *File) CompareLast(ctx context.Context, s Saved) error {
	var from, last chunk.Checkpoint
	for _, c := range s.Checkpoints {
		from, last = last, c
	}
	return f.compare(ctx, from, last)
}

// compare reads the source from a checkpoint and compares it with ascending checkpoints
// of an earlier run. It checks all of them, because a resume may start from any of them.
func (f *File) compare(ctx context.Context, from chunk.Checkpoint, list ...chunk.Checkpoint) (err error) {
	for _, want := range list {
		if from, err = f.hash(ctx, from, want.Offset, list[len(list)-1].Offset); err != nil {
			return err
		}
		if from != want {
			return fmt.Errorf("%w: its first %d bytes have changed", session.ErrSourceChanged, want.Offset)
		}
	}
	return nil
}

// CopyDiffers is the error for a copy of a source that differs from the source, as
// the server's checksum shows.
type CopyDiffers struct{ error }

func (e *CopyDiffers) Unwrap() error { return e.error }

func (f *File) Changed(ctx context.Context, n int64) error {
	if err := f.Unchanged(ctx, f.hashed); err != nil {
		return err
	}
	if f.copied {
		return &CopyDiffers{fmt.Errorf("%w: its first %d bytes are not those that the server holds", session.ErrSourceChanged, n)}
	}
	return nil
}
