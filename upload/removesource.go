package upload

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/session"
)

// removal is what [CallOptions].RemoveSource and Dispose request. The zero value removes nothing.
type removal struct {
	wanted  bool
	dispose func(*chunk.Held) error // is called instead, if it is not nil
}

// refuseLink returns an error if path is a symbolic link. To remove the link would free
// nothing, and its target may be what other links lead to.
func refuseLink(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s: %w but a symbolic link, which is not removed: name the file to which it leads", path, chunk.ErrNotRegular)
	}
	return nil
}

// openSource opens the file at path. below is that of a Job.
func (u *Uploader) openSource(path, below string) (*chunk.Source, error) {
	if u.below != "" || u.removal.wanted {
		return u.openBelow(path, below)
	}
	return chunk.Open(path)
}

// openBelow opens a file without following links below CallOptions.Below or below. A file that will be removed is the
// one with the name: a link that replaced it after refuseLink is not followed either.
func (u *Uploader) openBelow(path, below string) (*chunk.Source, error) {
	dir, _ := filepath.Split(path)
	below = cmp.Or(u.below, below, dir, ".")
	rel, err := filepath.Rel(below, path)
	if err != nil {
		return nil, err
	}
	return chunk.OpenBelow(below, rel)
}

// thenRemove removes the source, which is open, if the upload that ended with err has
// succeeded. It returns err.
func (j *job) thenRemove(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	if !j.u.removal.wanted || j.result.label.get().path == "" {
		j.file.Release()
		return nil
	}
	if skipped := j.result.known.Skipped; skipped != SkipNothing && skipped != SkipIdentical {
		return nil // the bytes were not compared
	}
	kept := j.removeSource(ctx)
	j.result.update(func(r *Result) { r.SourceRemoved, r.SourceKept = kept == nil, kept })
	return nil
}

// removeSource removes the source, if its bytes are those of the object.
func (j *job) removeSource(ctx context.Context) error {
	made := j.result.known.Object
	if made == nil || !made.HasCRC32C || made.Generation == 0 {
		return fmt.Errorf("%w: the service did not report the generation and the CRC32C of %s", session.ErrOutcomeUnknown, j.spec.URL())
	}
	return j.file.Remove(ctx,
		func() (bool, error) { return j.sameBytes(ctx, made) },
		func() error { return j.confirmObject(ctx, made) },
		j.u.removal.dispose)
}

// confirmObject reads the metadata of the object, and returns an error unless it is still
// the one that was made or found. The reply that described it may be old: if the reply to the
// last request is lost, a status query describes the object even if it was deleted meanwhile.
func (j *job) confirmObject(ctx context.Context, made *session.Object) error {
	j.uplink.Permit = nil // the upload has ended, and with it its lease
	a, err := j.requests.Ask(ctx, session.Request{}, j.wire().Stat)
	switch now := a.Object; {
	case err != nil:
		return err
	case now == nil:
		return fmt.Errorf("%w: %s does not exist any more", session.ErrOutcomeUnknown, j.spec.URL())
	case now.Generation != made.Generation || now.Size != made.Size || !now.HasCRC32C || now.CRC32C != made.CRC32C:
		return fmt.Errorf("%w: %s was replaced (generation %d, not %d)", session.ErrOutcomeUnknown, j.spec.URL(), now.Generation, made.Generation)
	}
	return nil
}
