package source

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"gcsup/internal/sourcefile"
	"gcsup/session"
)

// Remove removes the file and closes it, if it still has the bytes that were read. same
// reads all bytes and compares them with those of the object. Remove calls it unless the identity
// of the file shows that they have not changed: a file that was not settled before it was read, or
// that cannot be synced, may have changed through a mapping. After a resume, the first bytes may not
// have been compared at all. confirm is called last, because the comparison
// can take long. It returns an error if the object does not exist. If dispose is not nil, it is
// called instead of removing the file, see [sourcefile.File.Dispose].
func (f *File) Remove(ctx context.Context, same func() (bool, error), confirm func() error, dispose func(dir *os.Root, path string, info fs.FileInfo, unchanged func() error) error) error {
	settled, err := f.src.Settle(ctx)
	if err != nil {
		return err
	}
	change := sourcefile.Compare(f.identity, settled.Identity)
	if change == sourcefile.Same && (f.racy || !f.settled || f.unsynced || settled.Unsynced || f.adopted) {
		change = sourcefile.ChangeTimeOnly
	}
	switch change {
	case sourcefile.Different:
		return fmt.Errorf("%w: its size or modification time has changed after it was read", session.ErrSourceChanged)
	case sourcefile.ChangeTimeOnly:
		equal, err := same()
		switch {
		case err != nil:
			return err
		case !equal:
			return fmt.Errorf("%w: its bytes are not those of the object", session.ErrSourceChanged)
		}
	}
	if err := confirm(); err != nil {
		return err
	}
	if ctx.Err() != nil { // the caller may have stopped waiting
		return context.Cause(ctx)
	}
	if dispose != nil {
		return f.src.Dispose(settled.Identity, dispose)
	}
	return f.src.Remove(settled.Identity)
}
