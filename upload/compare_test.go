package upload_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"os"
	"slices"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// compared collects the outcomes of a comparison, by object. failed is the error without a Result.
func compared(ctx context.Context, up *upload.Uploader, jobs iter.Seq[upload.Job], opts *upload.BatchOptions) (got map[string]fileResult, failed error) {
	got = map[string]fileResult{}
	for r, err := range up.Compare(ctx, jobs, opts) {
		if r == nil {
			return got, err
		}
		got[r.Spec.Object] = fileResult{r, err, 0}
	}
	return got, nil
}

// TestCompare checks each difference, with and without a listing.
func TestCompare(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		key, err := session.NewEncryptionKey(bytes.Repeat([]byte{1}, 32))
		require.NoError(t, err)
		other, err := session.NewEncryptionKey(bytes.Repeat([]byte{2}, 32))
		require.NoError(t, err)
		const (
			equal = iota
			missing
			size
			content
			sealed // the object has a key
			gzip
			gzipSize
			count
		)
		up, jobs := w.uploader(), w.jobs(count, 1000)
		jobs[sealed].Spec.EncryptionKey = key
		jobs[gzip].Spec.Gzip, jobs[gzipSize].Spec.Gzip = true, true
		files(w.t.Context(), up, slices.Concat(jobs[:missing], jobs[size:]), nil)
		for i, b := range map[int][]byte{size: data(1001), content: data(1000), gzipSize: data(999)} {
			if i == content {
				b = bytes.Clone(b)
				b[999]++
			}
			require.NoError(t, os.WriteFile(jobs[i].Path, b, 0o600))
		}
		for _, c := range []struct {
			key  session.EncryptionKey
			want [count]upload.Difference
		}{
			{session.EncryptionKey{}, [count]upload.Difference{upload.ObjectEqual, upload.ObjectMissing, upload.SizeDiffers, upload.ContentDiffers, upload.ChecksumMissing, upload.ObjectEqual, upload.SizeDiffers}},
			{key, [count]upload.Difference{upload.ContentDiffers, upload.ObjectMissing, upload.SizeDiffers, upload.ContentDiffers, upload.ObjectEqual, upload.ContentDiffers, upload.SizeDiffers}},
			{other, [count]upload.Difference{upload.ContentDiffers, upload.ObjectMissing, upload.SizeDiffers, upload.ContentDiffers, upload.ContentDiffers, upload.ContentDiffers, upload.SizeDiffers}},
		} {
			for _, listing := range []*upload.Listing{nil, {Bucket: "bkt"}} {
				for i := range jobs {
					jobs[i].Spec.EncryptionKey, jobs[i].Spec.Gzip = c.key, false
				}
				inserts := w.srv.Stats().Ops[faults.OpInsert]
				got, err := compared(w.t.Context(), up, slices.Values(jobs), &upload.BatchOptions{Listing: listing})
				if err != nil || len(got) != count {
					t.Fatalf("%d outcomes, error %v", len(got), err)
				}
				for i, job := range jobs {
					o := got[job.Spec.Object]
					if o.err != nil || o.Difference != c.want[i] || (o.Object == nil) != (c.want[i] == upload.ObjectMissing) || o.Planned != (c.want[i] != upload.ObjectEqual) {
						t.Errorf("key %v, listing %v: file %d: %v, object %+v, error %v; want %v", !c.key.IsZero(), listing != nil, i, o.Difference, o.Object, o.err, c.want[i])
					}
				}
				if n := w.srv.Stats().Ops[faults.OpInsert]; n != inserts {
					t.Errorf("%d uploads", n-inserts)
				}
			}
		}
	})
}

// TestCompareFails checks the errors of buckets and listings.
func TestCompareFails(t *testing.T) {
	refused := faults.Fault{Match: faults.Match{Op: faults.OpList}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusForbidden}}
	for _, c := range []struct {
		name, bucket string
		listing      bool
		faults       []faults.Fault
		outcomes     int   // for three files without an object
		file, failed error // of each file, and of the listing
	}{
		{"listed", "bkt", true, nil, 3, nil, nil},
		{"unlisted", "bkt", false, nil, 3, nil, nil},
		{"no bucket", "missing", false, nil, 3, session.ErrNotFound, nil},
		{"no bucket, listed", "missing", true, nil, 0, nil, session.ErrNotFound},
		{"listing refused", "bkt", true, []faults.Fault{refused}, 3, nil, nil},
		{"listing refused, unlisted", "bkt", false, []faults.Fault{refused}, 3, nil, nil},
		{"object refused", "bkt", false, []faults.Fault{{Match: faults.Match{Op: faults.OpGet}, Times: -1, Do: refused.Do}}, 3, session.ErrPermission, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: c.faults}, func(w *world) {
				jobs := w.jobs(3, 100)
				for i := range jobs {
					jobs[i].Spec.Bucket = c.bucket
				}
				opts := &upload.BatchOptions{Jobs: 1}
				if c.listing {
					opts.Listing = &upload.Listing{Bucket: c.bucket}
				}
				got, failed := compared(w.t.Context(), w.uploader(), slices.Values(jobs), opts)
				if len(got) != c.outcomes || !errors.Is(failed, c.failed) {
					t.Errorf("%d outcomes, error %v; want %d, %v", len(got), failed, c.outcomes, c.failed)
				}
				for name, o := range got {
					if !errors.Is(o.err, c.file) || c.file == nil && o.Difference != upload.ObjectMissing {
						t.Errorf("%s: %v, error %v; want the error %v", name, o.Difference, o.err, c.file)
					}
				}
			})
		})
	}
}
