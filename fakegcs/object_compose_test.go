package fakegcs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// A composed object in a directory shares the files of its sources, even if the
// sources are replaced or deleted. A file is removed with the last object that uses
// it.
func TestComposedShares(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	blobs := func() int {
		t.Helper()
		list, err := os.ReadDir(filepath.Join(dir, "blobs"))
		require.NoError(t, err)
		return len(list)
	}
	compose := func(name string, sources ...string) {
		t.Helper()
		body := `{"sourceObjects":[{"name":"` + strings.Join(sources, `"},{"name":"`) + `"}]}`
		w.want(200, "", "POST", "/storage/v1/b/bkt/o/"+name+"/compose", []byte(body))
	}
	a, b := data(q + 3)[3:], data(2 * q)[q-5:]
	w.insert("a", string(a))
	w.insert("b", string(b))
	w.insert("none", "")
	compose("ab", "a", "none", "b", "a")
	compose("abab", "ab", "none", "ab")
	if n := blobs(); n != 2 { // an empty object has none
		t.Errorf("%d blobs of 2 objects", n)
	}
	w.do("DELETE", "/storage/v1/b/bkt/o/a", nil)
	w.insert("b", "another")
	once := string(slices.Concat(a, b, a))
	check := func() {
		t.Helper()
		for name, want := range map[string]string{"ab": once, "abab": once + once} {
			w.holds(name, []byte(want))
			for _, from := range []int{0, 1, q - 1, q, q + 1, q + len(b) - 1, q + len(b), len(once) - 1, len(want) - 1} {
				for _, to := range []int{from, min(from+1, len(want)-1), min(from+q, len(want)-1), len(want) - 1} {
					a := w.do("GET", "/bkt/"+name, nil, fmt.Sprintf("Range: bytes=%d-%d", from, to))
					status := 206
					if from == 0 && to == len(want)-1 { // the whole object
						status = 200
					}
					if a.StatusCode != status || a.body != want[from:to+1] {
						t.Errorf("%s [%d,%d]: %d, %d bytes", name, from, to, a.StatusCode, len(a.body))
					}
				}
			}
		}
	}
	check()
	w = w.again(dir)
	check()
	w.do("DELETE", "/storage/v1/b/bkt/o/ab", nil)
	if n := blobs(); n != 3 {
		t.Errorf("%d blobs while the composed objects use them", n)
	}
	compose("abab", "abab") // replaces a source of itself
	w.holds("abab", []byte(once+once))
	w.do("DELETE", "/storage/v1/b/bkt/o/abab", nil)
	if n := blobs(); n != 1 {
		t.Errorf("%d blobs are left of 1 object", n)
	}
}

func TestComposeWithKMSKey(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("a", "hello")
	const key = "projects/p/locations/us/keyRings/r/cryptoKeys/k"
	made := w.do("POST", "/storage/v1/b/bkt/o/b/compose?kmsKeyName="+key, []byte(`{"sourceObjects":[{"name":"a"}]}`)).json(t)
	if made["kmsKeyName"] != key {
		t.Errorf("the composite has kmsKeyName %v, want %s", made["kmsKeyName"], key)
	}
}
