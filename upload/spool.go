package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"gcsup/session/state"
	"gcsup/upload/internal/spool"
)

// defaultSpoolLimit is the limit of a spool if the program gives none.
const defaultSpoolLimit = 1 << 30

// A Spool keeps the bytes of each stream on disk until the service has committed them. The calls of
// [Uploader.Reader] and of a [Writer] are then saved like those of a file: if the process dies after the
// input has ended, [Uploader.Resume] completes the object.
//
// An object is published only if its input ended, and this was recorded on the disk (fsync). The input
// has ended if the reader returned [io.EOF] or the Writer was closed, and if [CallOptions].Size,
// [CallOptions].Confirm and the checksum of the Spec agree. A process that dies before the record leaves
// a stream that cannot be completed ([ErrIncomplete]). If the call fails or is interrupted before the
// record, the session and the files are removed.
//
// While the input lasts, exhausted retries do not stop the upload: the program that writes the stream cannot
// repeat it. After the end of the input, [Options].RetryFor and the number of retries apply again, and the
// upload stays resumable.
//
// Every byte that was read is in a file before the next one is read, and survives the process. Bytes
// are written to the disk (fsync) when the input ends, because a power loss before that also ends the
// program that writes the stream.
//
// If the service loses the session after bytes were removed, or finds them damaged, the object cannot be
// completed. The error wraps [ErrIncomplete] and the reason, such as [session.ErrSessionLost], and the other
// bytes stay until Cancel or Prune removes them. But if the failure is a refused precondition, and the service
// confirms that the session has ended, the session and the files are removed. A stream whose bytes are all on
// disk is kept after a failure: Resume sends it again, and Prune keeps it. Exception: after a refused
// precondition with [Spec].NoClobber, nothing is kept, because the service would refuse the stream again. If
// the files are damaged, the error wraps ErrIncomplete, too.
//
// With [Parts], a stream that is longer than its first window is sent in the parts of one multipart upload to the
// object, unless it has a precondition. Parts are read from the disk. The spool must have all parts that are being
// sent: the larger they are, the fewer connections send them. With a limit of 1 GiB or more, the object can have 5
// TiB. With a smaller one, Auto uses one connection, and otherwise a [Warning] has the maximum. If a process dies
// before the input has ended, the parts are left at the service until the next stream in parts of a Store without
// leases, Prune or Cancel removes them: unlike a session, they never expire.
//
// A stream in a spool is read from the beginning of the call, even if a precondition does not hold.
type Spool struct {
	// Dir is a directory of this machine, which must exist: a directory that is missing may be on a
	// volume that is not mounted. Each stream has a directory of its own there, named after the ID of
	// the upload. The files have mode 0600 and the plain bytes of the stream, or the compressed ones.
	// They are removed when the service has committed their bytes.
	Dir string

	// Limit bounds the bytes on disk of each stream, at least 4 MiB; 0 is 1 GiB. If a stream has
	// reached it, or if the disk is full, its input waits, and the event [InputWaits] has the reason.
	Limit int64
}

// limit returns Limit or its default.
func (s *Spool) limit() int64 { return cmp.Or(s.Limit, defaultSpoolLimit) }

func (s *Spool) check(store state.Store) error {
	switch {
	case s == nil:
	case s.Dir == "":
		return errors.New("spool: want a directory")
	case store == nil:
		return errors.New("spool: want a Store, too, which saves the uploads")
	case s.limit() < spool.MinLimit:
		return fmt.Errorf("spool of at most %d bytes: want at least %d", s.Limit, spool.MinLimit)
	case !utf8.ValidString(s.Dir):
		return fmt.Errorf("spool in %q: want UTF-8", s.Dir)
	}
	return nil
}

// withSpool returns a function that removes the files of a saved stream, and then calls
// discard. For another upload it returns discard.
func withSpool(ctx context.Context, doc *state.Upload, discard func() error) func() error {
	if doc.Spool == nil {
		return discard
	}
	return func() error {
		if err := removeSpool(ctx, doc); err != nil {
			return err
		}
		return discard()
	}
}

// RemoveSpool removes the files of the saved stream that t describes, for a program that deletes t from
// its store. It does nothing if the source of t is not in a spool. If a process works on the
// stream, the error wraps [state.ErrInUse].
func RemoveSpool(ctx context.Context, t *state.Upload) error {
	if t.Spool == nil {
		return nil
	}
	return removeSpool(ctx, t)
}

// spoolWhole reports whether another session can send the stream, or whether that is not known.
func spoolWhole(doc *state.Upload) bool {
	whole, err := spool.Whole(doc.Spool.Dir, doc.ID)
	return whole || err != nil
}

// removeSpool removes the files of a saved stream.
func removeSpool(ctx context.Context, doc *state.Upload) error {
	return spool.Remove(ctx, doc.Spool.Dir, doc.ID)
}
