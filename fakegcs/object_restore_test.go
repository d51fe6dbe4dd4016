package fakegcs_test

import (
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
)

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
	w = w.again(dir)
	w.gcs.Advance(7*24*time.Hour + 30*time.Minute) // the clock starts over
	if n := left(); n != 2 {
		t.Errorf("%d soft-deleted objects after a restart, want 2", n)
	}
	w.gcs.Advance(time.Hour)
	if n := left(); n != 1 {
		t.Errorf("%d soft-deleted objects, want 1", n)
	}
}
