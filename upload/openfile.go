package upload

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gcsup/chunk"
	"gcsup/internal/decide"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// openFile is the source of a call that can be read again: a file, or bytes that the program has.
type openFile struct {
	*call
	file   *source.File
	source source.Resumable // what is sent of the file: its bytes, or the compressed ones
}

// openPath opens the file at path. below is that of a Job. The caller must call close.
func openPath(ctx context.Context, c *call, path, below string) (*openFile, error) {
	c.result.label.set(func(n *names) { n.path = path })
	if c.u.removal.wanted {
		if err := refuseLink(path); err != nil {
			return nil, err
		}
	}
	reads := sourcefile.ReadsOf(ctx)
	opened := reads.Begin(path)
	src, err := openSource(c.u, path, below)
	opened()
	if err != nil {
		return nil, err
	}
	src.Record(reads, path)
	file, err := source.NewFile(src, path, c.reread)
	if err == nil && c.u.accept != nil {
		err = c.u.accept(path, file.Info())
	}
	var f *openFile
	if err == nil {
		f, err = newOpenFile(c, file, path)
	}
	if err != nil {
		_ = src.Close()
		return nil, err
	}
	return f, nil
}

// newOpenFile makes file the source of the call. name is for errors. The caller must call close.
func newOpenFile(c *call, file *source.File, name string) (*openFile, error) {
	size := file.Total()
	if size > maxObject {
		return nil, fmt.Errorf("%w: %s has %d bytes, an object at most %d (5 TiB)", session.ErrInvalid, name, size, int64(maxObject))
	}
	if err := c.expect.Sized(size); err != nil {
		return nil, err
	}
	c.result.source = file.Identity
	c.result.update(func(r *Result) { r.Source = file.Identity() })
	c.sized(size)
	return &openFile{call: c, file: file, source: file}, nil
}

// close ends what reads the source, and closes it.
func (f *openFile) close() { f.source.Close() }

// small reports whether the file is sent in a single request.
func (f *openFile) small() bool { return f.u.opts.single(f.file.Total()) }

// compress makes the source that is sent the compressed file, or the file itself, as the Spec
// requires.
func (f *openFile) compress() {
	switch zipped, compressed := f.source.(*source.Gzip); {
	case f.spec.Gzip && !compressed:
		zipped = source.NewGzip(f.file, f.u.compressor, f.u.memory, f.u.opts.Window)
		f.source = zipped
		f.progress.source.Store(zipped.Offsets())
		f.requests.Pos.Size.Store(-1)
		f.expect.Size = nil // it is the size of the file, which was checked
		f.most = zipped.Most()
	case !f.spec.Gzip && compressed:
		zipped.Stop()
		f.source = f.file
		f.progress.source.Store(nil)
		f.most = 0
		f.requests.Pos.Size.Store(f.file.Total())
	}
}

// settle settles the file, see [source.File.Settle]. An event reports that it takes long.
func (f *openFile) settle(ctx context.Context) error { return f.settled(ctx, f.file) }

// settled settles a file, see [source.File.Settle].
func (c *call) settled(ctx context.Context, file *source.File) error {
	if err := file.Settle(ctx, func() { c.events.post(Event{Kind: Settling}) }); err != nil {
		return engine.SourceFailed(ctx, err)
	}
	return nil
}

// sameBytes reads the source and compares its CRC32C with that of an object. If the
// file is compressed, it compares the compressed bytes. If the source changes
// meanwhile, the error is the same as for an upload.
func (f *openFile) sameBytes(ctx context.Context, object *session.Object) (bool, error) {
	if !object.HasCRC32C {
		return false, nil
	}
	f.compress()
	same, err := f.source.Equal(ctx, chunk.Checkpoint{Offset: object.Size, CRC32C: object.CRC32C})
	if err != nil {
		return false, engine.SourceFailed(ctx, err)
	}
	return same, nil
}

// sameSource checks that the file is the one with which a saved upload began.
func (f *openFile) sameSource(ctx context.Context, doc *state.Upload) error {
	doubt, err := f.journal.SameSource(doc, f.file.Total(), f.file.Since)
	switch {
	case err != nil || doubt == saved.NoDoubt:
		return err
	case doc.Parts != nil && doc.Gzip == nil:
		return f.sameParts(ctx, doc)
	case doubt == saved.AllBytes:
		return f.source.CompareAll(ctx, savedSource(doc))
	}
	return f.source.CompareLast(ctx, savedSource(doc))
}

// sameParts compares the source with the saved checksums of all parts.
func (f *openFile) sameParts(ctx context.Context, doc *state.Upload) error {
	for i, rng := range doc.Parts.Ranges(doc.Source.Size) {
		part := &doc.Parts.List[i]
		known := part.Checkpoints
		if part.Finished() {
			known = []chunk.Checkpoint{{Offset: rng.Len(), CRC32C: part.CRC32C}}
		}
		if err := f.file.Section(rng).CompareAll(ctx, source.Saved{Checkpoints: known}); err != nil {
			return err
		}
	}
	f.file.Proven()
	return nil
}

// savedSource returns what a saved upload records of the source.
func savedSource(t *state.Upload) source.Saved {
	return source.Saved{Checkpoints: t.Checkpoints, Sent: t.HighWater, Compression: (*source.Compression)(t.Gzip)}
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
func openSource(u *Uploader, path, below string) (*sourcefile.File, error) {
	if u.below == "" && !u.removal.wanted {
		return sourcefile.Open(path)
	}
	// No link below CallOptions.Below or below is followed. A file that will be removed is the one with the name: a link
	// that replaced it after refuseLink is not followed either.
	dir, _ := filepath.Split(path)
	below = cmp.Or(u.below, below, dir, ".")
	rel, err := filepath.Rel(below, path)
	if err != nil {
		return nil, err
	}
	return sourcefile.OpenBelow(below, rel)
}

// thenRemove removes the source, which is open, if the upload that ended with err has
// succeeded. It returns err.
func (f *openFile) thenRemove(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	if !f.u.removal.wanted || f.result.label.get().path == "" {
		f.file.Release()
		return nil
	}
	if skipped := f.result.known.Skipped; skipped != SkipNothing && skipped != SkipIdentical {
		return nil // the bytes were not compared
	}
	kept := f.remove(ctx)
	f.result.update(func(r *Result) { r.SourceRemoved, r.SourceKept = kept == nil, kept })
	return nil
}

// remove removes the source, if its bytes are those of the object.
func (f *openFile) remove(ctx context.Context) error {
	made := f.result.known.Object
	if made == nil || !made.HasCRC32C || made.Generation == 0 {
		return fmt.Errorf("%w: the service did not report the generation and the CRC32C of %s", session.ErrOutcomeUnknown, f.spec.URL())
	}
	return f.file.Remove(ctx,
		func() (bool, error) { return f.sameBytes(ctx, made) },
		func() error { return f.confirmObject(ctx, made) },
		f.u.removal.dispose)
}

// confirmObject reads the metadata of the object, and returns an error unless it is still
// the one that was made or found. The reply that described it may be old: if the reply to the
// last request is lost, a status query describes the object even if it was deleted meanwhile.
func (f *openFile) confirmObject(ctx context.Context, made *session.Object) error {
	f.uplink.Permit = nil // the upload has ended, and with it its lease
	a, err := f.requests.Ask(ctx, decide.Request{}, f.wire().Stat)
	switch now := a.Object; {
	case err != nil:
		return err
	case now == nil:
		return fmt.Errorf("%w: %s does not exist any more", session.ErrOutcomeUnknown, f.spec.URL())
	case now.Generation != made.Generation || now.Size != made.Size || !now.HasCRC32C || now.CRC32C != made.CRC32C:
		return fmt.Errorf("%w: %s was replaced (generation %d, not %d)", session.ErrOutcomeUnknown, f.spec.URL(), now.Generation, made.Generation)
	}
	return nil
}

// useless returns the reason why nothing can be sent to the session of a saved upload, or "".
func useless(u *Uploader, doc *state.Upload) string {
	if err := state.Adopt(u.client, doc); err != nil {
		return err.Error()
	}
	if doc.Endpoint != u.client.Endpoint() {
		return "the earlier upload was to another endpoint"
	}
	return ""
}
