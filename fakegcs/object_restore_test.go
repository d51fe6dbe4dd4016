package fakegcs_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"gcsup/fakegcs"
)

func TestVersionsAndSoftDelete(t *testing.T) {
	for _, mode := range []string{"memory", "directory"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w, bkt := official(t, opts)
			ctx := context.Background()
			if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{VersioningEnabled: true}); err != nil {
				t.Fatal(err)
			}
			w.insert("a", "one")
			one, _ := w.gcs.Object("bkt", "a")
			w.insert("a", "two")
			if err := bkt.Object("a").Delete(ctx); err != nil {
				t.Fatal(err)
			}
			if _, ok := w.gcs.Object("bkt", "a"); ok {
				t.Error("a live object after delete")
			}
			list := func(query *storage.Query) (n int) {
				t.Helper()
				for it := bkt.Objects(ctx, query); ; n++ {
					if _, err := it.Next(); err == iterator.Done {
						return n
					} else if err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := list(&storage.Query{Versions: true}); n != 2 {
				t.Errorf("%d versions, want 2", n)
			}
			if mode == "directory" { // the generations survive a restart
				w.gcs.Close()
				w, bkt = official(t, opts)
			}
			rd, err := bkt.Object("a").Generation(one.Generation).NewReader(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(rd); string(got) != "one" || err != nil {
				t.Errorf("first generation is %q, %v", got, err)
			}
			rd.Close()
			if err := bkt.Object("a").Generation(one.Generation).Delete(ctx); err != nil {
				t.Fatal(err)
			}
			if n := list(&storage.Query{Versions: true}); n != 1 {
				t.Errorf("%d versions, want 1", n)
			}

			if _, err := bkt.Update(ctx, storage.BucketAttrsToUpdate{VersioningEnabled: false, SoftDeletePolicy: &storage.SoftDeletePolicy{RetentionDuration: time.Hour}}); err != nil {
				t.Fatal(err)
			}
			w.insert("s", "soft")
			s, _ := w.gcs.Object("bkt", "s")
			if err := bkt.Object("s").Delete(ctx); err != nil {
				t.Fatal(err)
			}
			if n := list(nil); n != 0 {
				t.Errorf("%d live objects, want 0", n)
			}
			if n := list(&storage.Query{SoftDeleted: true}); n != 1 {
				t.Errorf("%d soft-deleted objects, want 1", n)
			}
			if attrs, err := bkt.Object("s").Generation(s.Generation).Restore(ctx, &storage.RestoreOptions{}); err != nil || attrs.Generation == s.Generation || attrs.CRC32C != uint32(s.CRC32C) {
				t.Errorf("restore: %+v, %v", attrs, err)
			}
			w.gcs.Advance(2 * time.Hour)
			if n := list(&storage.Query{SoftDeleted: true}); n != 0 {
				t.Errorf("%d soft-deleted objects after they expired", n)
			}
			if got, err := w.gcs.ReadObject("bkt", "s"); string(got) != "soft" || err != nil {
				t.Errorf("the restored object has %q, %v", got, err)
			}
		})
	}
}

// Each soft-deleted object expires at its own time, even after a restart.
func TestSoftDeletedExpire(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`))
	for _, name := range []string{"a", "b", "c"} {
		w.insert(name, name)
		w.do("DELETE", "/storage/v1/b/bkt/o/"+name, nil)
		w.gcs.Advance(time.Hour)
	}
	left := func() int {
		return strings.Count(w.do("GET", "/storage/v1/b/bkt/o?softDeleted=true", nil).body, `"name"`)
	}
	w.gcs.Advance(7*24*time.Hour - 150*time.Minute) // half an hour after the end of the first
	if n := left(); n != 2 {
		t.Errorf("%d soft-deleted objects, want 2", n)
	}
	w = w.again(dir, func() {})
	w.gcs.Advance(7*24*time.Hour + 30*time.Minute) // the clock starts over
	if n := left(); n != 2 {
		t.Errorf("%d soft-deleted objects after a restart, want 2", n)
	}
	w.gcs.Advance(time.Hour)
	if n := left(); n != 1 {
		t.Errorf("%d soft-deleted objects, want 1", n)
	}
}
