package upload_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload"
)

var errOtherSize = errors.New("another size")

// acceptSize returns options that accept files of size bytes.
func acceptSize(size int64) upload.CallOptions {
	return upload.CallOptions{Accept: func(path string, info fs.FileInfo) error {
		if info.Size() != size {
			return fmt.Errorf("%s: %w", path, errOtherSize)
		}
		return nil
	}}
}

// TestAccept checks that nothing of a refused file is sent, and that its saved upload stays.
func TestAccept(t *testing.T) {
	t.Parallel()
	content := data(large)
	inBubble(t, nil, func(w *world) {
		path := w.file(content)
		up := w.uploader(resumable)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 2 * mib, To: 2*mib + 1}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		if res, err := withCall(up, acceptSize(large)).File(w.t.Context(), path, spec); err == nil || !res.Resumable {
			t.Fatalf("not interrupted: %v", err)
		}
		before := w.trace()
		require.NoError(t, os.WriteFile(path, content[:large-1], 0o600))
		refusing := withCall(up, acceptSize(large))
		id, err := up.ID(path, spec)
		require.NoError(t, err)
		for name, call := range map[string]func() error{
			"File":   func() error { _, err := refusing.File(w.t.Context(), path, spec); return err },
			"Resume": func() error { _, err := refusing.Resume(w.t.Context(), id); return err },
			"after another With": func() error {
				_, err := withCall(refusing, upload.CallOptions{RetryFor: time.Minute}).File(w.t.Context(), path, spec)
				return err
			},
		} {
			if err := call(); !errors.Is(err, errOtherSize) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := w.trace(); after != before {
			t.Errorf("requests for a refused file:\n%s", after)
		}
		w.wantSaved(1)
	})
}

// TestAcceptInBatch checks that a batch uploads the files that are accepted.
func TestAcceptInBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		jobs := w.jobs(3, 1000)
		require.NoError(t, os.WriteFile(jobs[1].Path, []byte("shorter"), 0o600))
		var refused []string
		for r, err := range withCall(w.uploader(), acceptSize(1000)).Files(w.t.Context(), slices.Values(jobs), nil) {
			if errors.Is(err, errOtherSize) {
				refused = append(refused, r.Spec.Object)
			} else if err != nil {
				t.Error(err)
			}
		}
		if want := []string{jobs[1].Spec.Object}; !slices.Equal(refused, want) {
			t.Errorf("refused %v, want %v", refused, want)
		}
		w.wantNoObject(jobs[1].Spec.Object)
	})
}
