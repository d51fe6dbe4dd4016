package fleet_test

import (
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/upload"
)

// TestOtherSettings submits a finished tree again and again, each time with one more setting. Workers replace each object
// once for each setting, although it has the content of its file. With the same settings the files are finished before.
func TestOtherSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	w.write("b", 1000, 2)
	w.write("large", 9<<20, 3)
	q := w.queue()
	w.submit(q)
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
			if err := w.gcs.AddFaults(lost); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.worker(q, "next", nil).Run(t.Context()); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
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
