package upload_test

import (
	"os"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// setModTime sets a modification time, and returns when the new change time of the
// file has passed.
func (w *world) setModTime(path string, at time.Time) {
	w.t.Helper()
	require.NoError(w.t, os.Chtimes(path, time.Time{}, at))
	// Use another file, because the modification time may be in the future.
	w.letPass(w.touched())
}

// touched returns a new file.
func (w *world) touched() string {
	w.t.Helper()
	f, err := os.CreateTemp(w.dir, "touched")
	require.NoError(w.t, err)
	defer f.Close()
	return f.Name()
}

// realNow is the current time of the clock for file times.
func (w *world) realNow() time.Time {
	w.t.Helper()
	info, err := os.Stat(w.touched())
	require.NoError(w.t, err)
	return info.ModTime()
}

// TestFileFromTheFutureIsCompared checks that a file with a time in the future is
// read again before the last request and at each resume, because its times do not
// show the next change.
func TestFileFromTheFutureIsCompared(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9*mib + 1)
		path := w.file(content)
		w.setModTime(path, w.realNow().Add(time.Hour))
		began := time.Now()
		w.interrupt(path, 6*mib)
		if waited := time.Since(began); waited != time.Minute { // as interrupt does
			t.Errorf("the upload waited %v for a time that is an hour ahead", waited-time.Minute)
		}
		res, err := w.uploader().File(w.t.Context(), path, spec)
		require.NoError(t, err)
		// First the bytes up to the checkpoints are compared, and then all of them.
		if res.BytesReread < 4*mib+9*mib || res.ResumedFrom != 6*mib {
			t.Errorf("%d bytes were read again to resume at %d", res.BytesReread, res.ResumedFrom)
		}
		w.wantObject("obj", content)
	})
}

// TestFileFromTheNearFutureIsWaitedFor checks that an upload waits for a file whose
// time is slightly in the future, and reports the wait.
func TestFileFromTheNearFutureIsWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		w.setModTime(path, w.realNow().Add(2500*time.Millisecond))
		began := time.Now()
		res, err := w.uploader().File(w.t.Context(), path, spec)
		require.NoError(t, err)
		if waited := time.Since(began); waited < 500*time.Millisecond || waited > 3*time.Second {
			t.Errorf("the upload waited %v", waited)
		}
		if res.BytesReread != 0 || w.saw(upload.Settling) != 1 || w.events[0].Kind != upload.Settling {
			t.Errorf("%d bytes were read again, %d Settling events", res.BytesReread, w.saw(upload.Settling))
		}
		w.wantObject("obj", content)
	})
}

// TestSkippedFileIsNotSettled checks that a source that is skipped is not
// synced.
func TestSkippedFileIsNotSettled(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(9 * mib))
		w.done(w.uploader().File(w.t.Context(), path, spec))
		w.setModTime(path, w.realNow().Add(2500*time.Millisecond))
		began := time.Now()
		onlyNew := upload.Spec{Bucket: "bkt", Object: "obj", IfGenerationMatch: new(int64)}
		w.fails(session.ErrPrecondition)(w.uploader().File(w.t.Context(), path, onlyNew))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the upload waited %v", waited)
		}
	})
}
