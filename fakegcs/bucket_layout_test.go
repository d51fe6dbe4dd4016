package fakegcs_test

import (
	"strings"
	"testing"
)

// gcloud requests the layout before it moves an object. Without a layout, it does not
// use the bucket.
func TestStorageLayout(t *testing.T) {
	w := newWorld(t, nil)
	a := w.do("GET", "/storage/v1/b/bkt/storageLayout", nil)
	for _, want := range []string{`"kind": "storage#storageLayout"`, `"bucket": "bkt"`, `"location": "US"`} {
		if a.StatusCode != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%d %s, want %s", a.StatusCode, a.body, want)
		}
	}
	if a := w.do("GET", "/storage/v1/b/absent/storageLayout", nil); a.StatusCode != 404 {
		t.Errorf("a bucket that does not exist: %d, want 404", a.StatusCode)
	}
	if a := w.do("PUT", "/storage/v1/b/bkt/storageLayout", nil); a.StatusCode != 405 {
		t.Errorf("PUT: %d, want a refusal", a.StatusCode)
	}
}
