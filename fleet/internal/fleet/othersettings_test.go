package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
	"gcsup/upload"
)

// TestOtherSettings submits a finished tree again and again, each time with one more setting. Workers replace each object
// once for each setting, although it has the content of its file. With the same settings the files are finished before.
func TestOtherSettings(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "b": 1000, "large": 9 << 20})
	w.run(t.Context(), w.worker(q, "first", nil))
	settings := upload.Spec{Bucket: bucket}
	submit := func() fleet.Submitted {
		t.Helper()
		s := w.submission("tree/")
		s.Settings = settings
		return must(fleet.Submit(t.Context(), q, s))
	}
	made := 1
	for _, c := range []struct {
		name string
		set  func()
	}{
		{"cache control", func() { settings.CacheControl = "no-store" }},
		{"content type", func() { settings.ContentType = "text/csv" }},
		{"metadata", func() { settings.Metadata = map[string]string{"a": "b"} }},
		{"storage class", func() { settings.StorageClass = "NEARLINE" }},
		{"ACL", func() { settings.PredefinedACL = "publicRead" }},
		{"custom time", func() { settings.CustomTime = time.Unix(1, 0).UTC() }},
		{"encryption", func() { settings.KMSKeyName = "projects/p/locations/l/keyRings/r/cryptoKeys/k" }},
		{"hold", func() { settings.TemporaryHold = true }},
	} {
		c.set()
		if got := submit(); got.Files != 3 || got.Finished != 0 {
			t.Errorf("%s: submitted %+v, want 3 files", c.name, got)
		}
		if made++; made == 3 {
			// The reply to the first request with data is lost: the object is not made a second time.
			lost := faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Times: 1, Do: faults.Action{Effect: faults.EffectLoseReply}}
			require.NoError(t, w.gcs.AddFaults(lost))
		}
		require.NoError(t, w.worker(q, "next", nil).Run(t.Context()))
		for _, name := range []string{"tree/a", "tree/b", "tree/large"} {
			if got := w.made(name); got != made {
				t.Errorf("%s: %s was made %d times, want %d", c.name, name, got, made)
			}
		}
		if got := submit(); got.Files != 0 || got.Finished != 3 {
			t.Errorf("%s: submitted again: %+v, want 3 finished files", c.name, got)
		}
	}
	if o, _ := w.gcs.Object(bucket, "tree/large"); o.CacheControl != "no-store" || o.ContentType != "text/csv" || o.Metadata["a"] != "b" || !o.TemporaryHold {
		t.Errorf("the settings of the object are %+v", o)
	}
}

// TestOtherSettingsAfterFailure submits a finished tree with other settings. A file fails, or the submit is interrupted when
// the records of tasks have expired. Then it is submitted again. Its object still gets the settings.
func TestOtherSettingsAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	w.write("b", 1000, 2)
	q := w.queue()
	var s fleet.Submission
	submit := func(ctx context.Context, cacheControl string, change func()) error {
		s = w.submission("tree/")
		s.Settings.CacheControl = cacheControl
		change()
		_, err := fleet.Submit(ctx, q, s)
		return err
	}
	finish := func(cacheControl string) {
		t.Helper()
		require.NoError(t, submit(t.Context(), cacheControl, func() {}))
		require.NoError(t, w.worker(q, "next", nil).Run(t.Context()))
		for _, name := range []string{"tree/a", "tree/b"} {
			if o, _ := w.gcs.Object(bucket, name); o.CacheControl != cacheControl {
				t.Errorf("%s has the cache control %q, want %q", name, o.CacheControl, cacheControl)
			}
		}
	}
	finish("first")
	for failed, missing := range map[string]string{"one failed": "a", "all failed": ""} {
		path := filepath.Join(w.tree, missing)
		require.NoError(t, submit(t.Context(), failed, func() {}))
		require.NoError(t, os.Rename(path, path+".away"))
		w.run(t.Context(), w.worker(q, "next", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 }))
		require.NoError(t, os.Rename(path+".away", path))
		finish(failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := submit(ctx, "interrupted", func() { s.Jobs = func(func(upload.Job) bool) { cancel() } }); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that the submit was interrupted", err)
	}
	records := must(must(jetstream.New(w.connect())).KeyValue(t.Context(), "gcsup-default-records"))
	for _, key := range must(records.Keys(t.Context())) {
		if !strings.HasPrefix(key, "submission-") {
			require.NoError(t, records.Purge(t.Context(), key))
		}
	}
	finish("interrupted")
}
