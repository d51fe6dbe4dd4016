//go:build unix

package gcs_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"gcsup/internal/objectmeta"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestPreservePOSIX checks the metadata of files in a batch: in a single request,
// in a session, and in one that is resumed after the file was read and its
// permissions were changed.
func TestPreservePOSIX(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	w := newAttributeWorld(t)
	accessed, modified := time.Unix(1_500_000_000, 5), time.Unix(1_600_000_000, 999_999_999)
	want := map[string]string{
		"mine": "v", objectmeta.FileModTime: "1600000000", objectmeta.FileAccessTime: "1500000000", objectmeta.FileMode: "640",
		objectmeta.FileUID: strconv.Itoa(os.Getuid()), objectmeta.FileGID: strconv.Itoa(os.Getgid()),
	}
	for _, tt := range []struct {
		name   string
		size   int
		resume bool
		skip   upload.Skip
	}{
		{"empty", 0, false, upload.SkipNothing},
		{"small", 100, false, upload.SkipNothing},
		{"large", 9 << 20, false, upload.SkipNothing},
		{"with same time", 100, false, upload.SkipSameTime},
		{"resumed", 9 << 20, true, upload.SkipNothing},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, _ := source(t, tt.size)
			require.NoError(t, errors.Join(os.Chmod(path, 0o640), os.Chtimes(path, accessed, modified)))
			spec := upload.Spec{Bucket: "bkt", Object: tt.name, Metadata: map[string]string{"mine": "v"}}
			once := func(opts upload.Options) (res *upload.Result, err error) {
				up := w.uploader(opts)
				for res, err = range up.Files(t.Context(), slices.Values([]upload.Job{{Path: path, Spec: spec}}), &upload.BatchOptions{PreservePOSIX: true, Skip: tt.skip}) {
				}
				return res, err
			}
			if tt.resume {
				w.outage()
				if _, err := once(upload.Options{RetryFor: time.Millisecond}); !errors.Is(err, session.ErrRetriesExhausted) {
					t.Fatal(err)
				}
				require.NoError(t, os.Chmod(path, 0o600))
			}
			res, err := once(upload.Options{})
			if err != nil || res.Resumed != tt.resume {
				t.Fatalf("%+v, %v", res, err)
			}
			if o, _ := w.srv.Object("bkt", tt.name); !maps.Equal(o.Metadata, want) {
				t.Errorf("metadata = %v, want %v", o.Metadata, want)
			}
			if len(spec.Metadata) != 1 {
				t.Error("the caller's metadata changed")
			}
		})
	}
}
