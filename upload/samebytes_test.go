package upload

import (
	"compress/flate"
	"errors"
	"os"
	"testing"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/session"
)

// TestSameBytesOfASourceThatChanges checks that a file is not taken for the same as an object if
// it changes while it is compared.
func TestSameBytesOfASourceThatChanges(t *testing.T) {
	t.Parallel()
	for _, gzip := range []bool{false, true} {
		inBubble(t, nil, func(t *testing.T, _ *fakegcs.Server, u *Uploader) {
			SetGzipLevel(u, flate.HuffmanOnly) // ten times as fast as the default
			path, content := sourceFile(t, rereadStep+1)
			object := &session.Object{Size: int64(len(content)), CRC32C: chunk.Update(0, content), HasCRC32C: true}
			open := func() *job {
				j := u.newJob(t.Context(), Spec{Bucket: "bkt", Object: "obj", Gzip: gzip}, u.newBudget())
				t.Cleanup(func() { _, _ = j.finish(t.Context(), nil) })
				if err := j.open(path); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(j.closeSource)
				return j
			}
			if gzip {
				j := open()
				j.compress(true)
				all, err := j.gzip.digest(t.Context(), maxObject)
				if err != nil {
					t.Fatal(err)
				}
				object.Size, object.CRC32C = all.Offset, all.CRC32C
			}
			if same, err := open().sameBytes(t.Context(), object); !same || err != nil {
				t.Fatalf("gzip %v: an unchanged file: %v, %v", gzip, same, err)
			}
			j := open()
			j.file.reread = func(n, offset, end int64) {
				if offset < end {
					if err := os.Chtimes(path, j.result.began, j.result.began); err != nil {
						t.Error(err)
					}
				}
			}
			if same, err := j.sameBytes(t.Context(), object); same || !errors.Is(err, session.ErrSourceChanged) {
				t.Errorf("gzip %v: a file that changed: %v, %v", gzip, same, err)
			}
		})
	}
}
