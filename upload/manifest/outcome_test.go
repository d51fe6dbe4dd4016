package manifest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/manifest"
)

// TestOutcome checks what is recorded of an upload.
func TestOutcome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	identity, err := sourcefile.StatIdentity(path)
	require.NoError(t, err)
	spec := upload.Spec{Bucket: "bkt", Object: "o"}
	object := &session.Object{Generation: 7, CRC32C: 8, HasCRC32C: true}
	base := manifest.Record{Path: path, Source: identity, Bucket: "bkt", Object: "o"}
	with := func(change func(*manifest.Record)) manifest.Record {
		r := base
		change(&r)
		return r
	}
	modified := time.Unix(0, identity.ModTimeNS)
	at := func(t time.Time) *session.Object {
		return &session.Object{Generation: 7, CRC32C: 8, HasCRC32C: true, Size: 1, FileModTime: t, Created: modified.Add(time.Hour)}
	}
	for name, c := range map[string]struct {
		res  upload.Result
		err  error
		want manifest.Record // zero if there is none
	}{
		"done": {upload.Result{Source: identity, Object: object}, nil, with(func(r *manifest.Record) {
			r.Status, r.Generation, r.CRC32C, r.HasCRC32C = manifest.Done, 7, 8, true
		})},
		"skipped, not opened": {upload.Result{Skipped: upload.SkipExisting, Object: object}, nil, with(func(r *manifest.Record) {
			r.Status, r.Generation, r.CRC32C, r.HasCRC32C = manifest.Skipped, 7, 8, true
		})},
		"skipped by its time, not opened": {upload.Result{Skipped: upload.SkipSameTime, Size: 1, Object: at(modified)}, nil, with(func(r *manifest.Record) {
			r.Status, r.Generation, r.CRC32C, r.HasCRC32C = manifest.Skipped, 7, 8, true
		})},
		// The file was changed after it was skipped. The next run must look at it.
		"skipped by its time, changed": {upload.Result{Skipped: upload.SkipSameTime, Size: 1, Object: at(modified.Add(-time.Minute))}, nil, manifest.Record{}},
		"skipped by its time, gone":    {upload.Result{Path: path + ".gone", Skipped: upload.SkipSameTime, Size: 1, Object: at(modified)}, nil, manifest.Record{}},
		"failed": {upload.Result{Source: identity, Object: object}, errors.New("why"), with(func(r *manifest.Record) {
			r.Status, r.Reason = manifest.Failed, "why"
		})},
		"not tried":   {upload.Result{}, fmt.Errorf("%w: why", upload.ErrNotTried), manifest.Record{}},
		"interrupted": {upload.Result{Source: identity}, &upload.InterruptedError{}, manifest.Record{}},
		"canceled":    {upload.Result{Source: identity}, fmt.Errorf("%w: why", context.Canceled), manifest.Record{}},
	} {
		c.res.Path, c.res.Spec = cmp.Or(c.res.Path, path), spec
		got, ok := manifest.NewRecord(&c.res, c.err)
		if got != c.want || ok != (c.want != manifest.Record{}) {
			t.Errorf("%s: Outcome = %+v, %v; want %+v", name, got, ok, c.want)
		}
	}
}
