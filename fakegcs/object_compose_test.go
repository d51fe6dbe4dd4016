package fakegcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/storage"

	"gcsup/fakegcs"
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
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	compose := func(name string, sources ...string) {
		t.Helper()
		body := `{"sourceObjects":[{"name":"` + strings.Join(sources, `"},{"name":"`) + `"}]}`
		if a := w.do("POST", "/storage/v1/b/bkt/o/"+name+"/compose", []byte(body)); a.StatusCode != 200 {
			t.Fatal(a.StatusCode, a.body)
		}
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
			if got, err := w.gcs.ReadObject("bkt", name); err != nil || string(got) != want {
				t.Errorf("%s has %d bytes, %v", name, len(got), err)
			}
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
	w = w.again(dir, func() {})
	check()
	w.do("DELETE", "/storage/v1/b/bkt/o/ab", nil)
	if n := blobs(); n != 3 {
		t.Errorf("%d blobs while the composed objects use them", n)
	}
	compose("abab", "abab") // replaces a source of itself
	if got, err := w.gcs.ReadObject("bkt", "abab"); err != nil || string(got) != once+once {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	w.do("DELETE", "/storage/v1/b/bkt/o/abab", nil)
	if n := blobs(); n != 1 {
		t.Errorf("%d blobs are left of 1 object", n)
	}
}

func TestCompose(t *testing.T) {
	for _, mode := range []string{"memory", "directory", "discard"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{Discard: mode == "discard"}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w, bkt := official(t, opts)
			ctx := context.Background()
			var sources []*storage.ObjectHandle
			var want []byte
			for i, size := range []int{q + 1, 0, 5, 2 * q, 1} {
				w.insert(fmt.Sprint("part", i), string(data(size)))
				sources = append(sources, bkt.Object(fmt.Sprint("part", i)))
				want = append(want, data(size)...)
			}
			c := bkt.Object("whole").ComposerFrom(sources...)
			c.DeleteSourceObjects = true
			attrs, err := c.Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			o, _ := w.gcs.Object("bkt", "whole")
			if attrs.Size != int64(len(want)) || len(attrs.MD5) != 0 || attrs.ComponentCount != 5 || o.CRC32C.String() != crc(want) {
				t.Errorf("composed: %+v, crc32c %s, want %s", attrs, o.CRC32C, crc(want))
			}
			if mode != "discard" {
				if got, err := w.gcs.ReadObject("bkt", "whole"); err != nil || !bytes.Equal(got, want) {
					t.Errorf("the composed object has %d bytes, %v", len(got), err)
				}
			}
			if _, err := sources[0].Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
				t.Errorf("a source after deleteSourceObjects: %v", err)
			}
			w.insert("tail", "tail")
			again, err := bkt.Object("whole").ComposerFrom(bkt.Object("whole").Generation(attrs.Generation), bkt.Object("tail")).Run(ctx)
			if err != nil || again.ComponentCount != 6 || again.Size != attrs.Size+4 {
				t.Errorf("composed again: %+v, %v", again, err)
			}
			bad := bkt.Object("bad").ComposerFrom(bkt.Object("tail"))
			bad.SendCRC32C, bad.CRC32C = true, 1
			if _, err := bad.Run(ctx); statusOf(err) != 400 {
				t.Errorf("with a wrong crc32c: %v", err)
			}
			gcloud := `{"destination":{"crc32c":"AAAAAA==","md5Hash":"1B2M2Y8AsgTpgAmY7PhCfg=="},"sourceObjects":[{"name":"tail"}]}`
			if a := w.do("POST", "/storage/v1/b/bkt/o/gcloud/compose", []byte(gcloud)); a.StatusCode != 200 {
				t.Errorf("with the metadata of the first source: %d %s", a.StatusCode, a.body)
			}
			if _, err := bkt.Object("bad").ComposerFrom(bkt.Object("missing")).Run(ctx); statusOf(err) != 404 {
				t.Errorf("with a source that does not exist: %v", err)
			}
			many := fmt.Sprintf(`{"sourceObjects":[%s{"name":"tail"}]}`, strings.Repeat(`{"name":"tail"},`, 32))
			if a := w.do("POST", "/storage/v1/b/bkt/o/bad/compose", []byte(many)); a.StatusCode != 400 {
				t.Errorf("with 33 sources: %d", a.StatusCode)
			}
		})
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
