package upload_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload"
)

// TestSourceName checks that the upload of a named source is found over any link to the file, and at no other
// destination or endpoint.
func TestSourceName(t *testing.T) {
	t.Parallel()
	content := data(large)
	inBubble(t, nil, func(w *world) {
		path := w.file(content)
		linked, other := filepath.Join(w.dir, "link"), filepath.Join(w.dir, "hard-link")
		require.NoError(t, os.Symlink(path, linked))
		require.NoError(t, os.Link(path, other))
		w.letPass(other)
		named := upload.CallOptions{SourceName: "/data/source"}
		var ids []string
		note := func(up *upload.Uploader, path string, spec upload.Spec) {
			id, err := up.ID(path, spec)
			require.NoError(t, err)
			ids = append(ids, id)
		}
		up := w.uploader(resumable)
		note(withCall(up, named), linked, spec)
		note(withCall(up, named), other, spec)
		note(withCall(withCall(up, named), upload.CallOptions{RetryFor: time.Hour}), path, spec)
		if ids[0] != ids[1] || ids[1] != ids[2] {
			t.Errorf("the IDs of one source are %v", ids)
		}
		note(up, linked, spec)
		note(up, other, spec)
		note(withCall(up, named), path, upload.Spec{Bucket: "bkt", Object: "other"})
		note(withCall(w.uploader(func(o *upload.Options) { o.Endpoint = "http://other.test" }), named), path, spec)
		note(withCall(up, upload.CallOptions{SourceName: "/data/other"}), path, spec)
		if slices.Sort(ids); len(slices.Compact(ids)) != 6 {
			t.Errorf("the IDs of different uploads are %v", ids)
		}

		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 2 * mib, To: 2*mib + 1}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		res, err := withCall(up, named).File(w.t.Context(), linked, spec)
		if err == nil || !res.Resumable {
			t.Fatalf("not interrupted: %v", err)
		}
		res, err = withCall(up, named).File(w.t.Context(), other, spec)
		if err != nil || res.ResumedFrom != 2*mib {
			t.Errorf("resumed from %d, %v", res.ResumedFrom, err)
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}
