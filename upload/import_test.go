package upload_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// export returns an interrupted upload as it is exported to another machine.
func (w *world) export(id string) []byte {
	w.t.Helper()
	doc, err := w.store.Load(w.t.Context(), id)
	require.NoError(w.t, err)
	out, err := state.Encode(doc)
	require.NoError(w.t, err)
	return out
}

// elsewhere returns the store of another machine and its copy of the source.
func (w *world) elsewhere(content []byte) (store *state.Dir, path string) {
	w.t.Helper()
	store, err := state.OpenDir(filepath.Join(w.dir, "elsewhere"))
	require.NoError(w.t, err)
	path = filepath.Join(w.dir, "copy")
	require.NoError(w.t, os.WriteFile(path, content, 0o600))
	require.NoError(w.t, os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)))
	return store, path
}

func decode(t *testing.T, data []byte) *state.Upload {
	t.Helper()
	doc, err := state.Decode(data)
	require.NoError(t, err)
	return doc
}

// TestImport checks that another machine resumes an upload if its copy of the
// source has the bytes that were sent.
func TestImport(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content, long, compressed := data(9*mib+77), data(36*mib), text(12*q)
	noChecksums := func(t *state.Upload) { t.Checkpoints = nil }
	for i, tt := range []struct {
		name string
		opts fakegcs.Options
		at   int64 // bytes that were sent; 34 MiB is more than headLimit, up to which an MD5 is compared
		copy []byte
		edit func(*state.Upload)
		err  error
		asks int // requests of one that is refused

		gzip    bool
		level   int  // of the other machine's compressor
		restart bool // the other machine starts over if its copy differs
	}{
		{name: "the same bytes", at: 6 * mib, copy: content},
		{name: "the same bytes, compared by MD5 only", at: 34 * mib, copy: long, edit: noChecksums, opts: fakegcs.Options{NoRunningHash: true}},
		{name: "the same bytes, compared by CRC32C only", at: 6 * mib, copy: content, edit: noChecksums, opts: fakegcs.Options{NoMD5: true}},
		{name: "a byte of what was sent", at: 6 * mib, copy: flipped(content, 100), err: session.ErrSourceChanged},
		{name: "a byte of what was sent, seen by MD5 only", at: 34 * mib, copy: flipped(long, 33*mib), edit: noChecksums, opts: fakegcs.Options{NoRunningHash: true}, err: session.ErrSourceChanged, asks: 1},
		{name: "a byte of what was sent, seen by CRC32C only", at: 6 * mib, copy: flipped(content, 5*mib), edit: noChecksums, opts: fakegcs.Options{NoMD5: true}, err: session.ErrSourceChanged, asks: 1},
		{name: "a byte of what was not sent", at: 6 * mib, copy: flipped(content, 8*mib)},
		{name: "a byte of what was sent, then all", at: 6 * mib, copy: flipped(content, 100), restart: true},
		{name: "a byte of what was sent, seen by the server's checksum, then all", at: 6 * mib, copy: flipped(content, 100), edit: noChecksums, restart: true},
		{name: "a byte of what was sent, and the furthest checksum is that of the copy", at: 6 * mib, copy: flipped(content, 100), opts: fakegcs.Options{NoMD5: true, NoRunningHash: true}, edit: func(t *state.Upload) {
			t.HighWater = int64(len(content))
			t.Checkpoints = []chunk.Checkpoint{{Offset: mib, CRC32C: checksum.Update(0, content[:mib])}, {Offset: t.HighWater, CRC32C: checksum.Update(0, flipped(content, 100))}}
		}, err: session.ErrSourceChanged},
		{name: "compressed", at: 3 * q, copy: compressed, gzip: true},
		{name: "compressed, another compressor", at: 3 * q, copy: compressed, gzip: true, level: 1},
		{name: "compressed, a byte of what was sent", at: 3 * q, copy: flipped(compressed, 100), gzip: true, err: session.ErrSourceChanged},
		{name: "compressed, a byte of it and another compressor", at: 3 * q, copy: flipped(compressed, 100), gzip: true, level: 1, err: session.ErrSourceChanged},
		{name: "compressed, a byte of what was not sent", at: 3 * q, copy: flipped(compressed, 12*q-1), gzip: true},
	} {
		by := []string{"File", "Resume"}[i%2] // in turn: both use the same code for the comparison
		if tt.at > 9*mib && tt.err == nil && testsize.Full(0, 1) == 1 {
			continue
		}
		t.Run(tt.name+" by "+by, func(t *testing.T) {
			inBubbleWithMD5(t, &tt.opts, func(w *world) {
				var first *upload.Result
				with, to := func(*upload.Options) {}, spec
				switch {
				case tt.gzip:
					with, to = zippedParts, zipped
					first = w.interruptZipped(w.file(compressed), tt.at, with)
				case tt.at > 9*mib:
					first = w.interrupt(w.file(long), tt.at)
				default:
					first = w.interrupt(w.file(content), tt.at)
				}
				saved := w.export(first.ID)
				store, path := w.elsewhere(tt.copy)
				defer store.Close()
				doc := decode(t, saved)
				if tt.edit != nil {
					tt.edit(doc)
				}
				up := w.uploader(with, func(o *upload.Options) { o.Store, o.RestartChanged = store, tt.restart })
				upload.SetGzipLevel(up, tt.level)
				id, err := up.Import(w.t.Context(), doc, path)
				require.NoError(t, err)
				before := len(w.srv.Requests())
				var res *upload.Result
				if by == "File" {
					res, err = up.File(w.t.Context(), path, to)
				} else {
					res, err = up.Resume(w.t.Context(), id)
				}
				requests := w.srv.Requests()[before:]
				left, lerr := store.List(w.t.Context())
				if lerr != nil {
					t.Fatal(lerr)
				}
				if tt.err != nil {
					if !errors.Is(err, tt.err) || res.BytesSent != 0 || len(requests) != tt.asks || len(left) != 1 {
						t.Errorf("error = %v, %d bytes sent, %d requests, %d saved; want %v, 0, %d, 1", err, res.BytesSent, len(requests), len(left), tt.err, tt.asks)
					}
					w.wantNoObject("obj")
					return
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				held, over := chunk.Floor(tt.at), tt.restart || tt.level != 0
				if over {
					held = 0
				}
				if res.ID != id || res.Resumed == over || res.ResumedFrom != held || res.BytesSent != res.Object.Size-held || res.BytesResent != 0 || len(left) != 0 || w.saw(upload.Discarded) != count(over) {
					t.Errorf("Result = %+v, %d saved, want it resumed from %d\n%s", res, len(left), held, w.trace())
				}
				w.wantFile(tt.copy, tt.gzip)
			})
		})
	}
}

// TestImportedChangesMeanwhile checks that a copy that is edited during the
// upload makes the upload fail and keeps the saved state, even with
// RestartChanged.
func TestImportedChangesMeanwhile(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Latency: 10 * time.Millisecond}, func(w *world) {
		content := data(14 * mib)
		saved := w.export(w.interrupt(w.file(content), 5*mib).ID)
		store, path := w.elsewhere(content)
		defer store.Close()
		edited := false
		up := w.uploader(func(o *upload.Options) {
			o.Store, o.RestartChanged = store, true
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Progress && e.Committed >= 10*mib && !edited {
					edited = true
					if err := os.Chtimes(path, time.Time{}, time.Unix(2e9, 0)); err != nil {
						t.Error(err)
					}
				}
			}
			o.ChunkSize = mib
		})
		id, err := up.Import(w.t.Context(), decode(t, saved), path)
		require.NoError(t, err)
		res, err := up.Resume(w.t.Context(), id)
		if !errors.Is(err, session.ErrSourceChanged) || !res.Resumed || !res.Resumable || res.BytesSent >= 15*mib {
			t.Errorf("Resume = %+v, %v, want ErrSourceChanged of one that can be resumed", res, err)
		}
		w.wantNoObject("obj")
		w.done(store.Load(w.t.Context(), id))
	})
}
