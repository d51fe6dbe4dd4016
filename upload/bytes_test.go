package upload_test

import (
	"crypto/md5"
	"fmt"
	"reflect"
	"testing"

	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestSizes checks the object at the boundaries of requests for each source that can be read again: that up to 8 MiB are sent
// in one request, and that nothing stays saved.
func TestSizes(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		for _, size := range []int64{0, 1, q, 8 * mib, 8*mib + 1, 20 * mib} {
			if size > mib && testing.Short() {
				continue
			}
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					content := data(size)
					res, err := call(w, w.uploader(), w.file(content), content)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
					w.wantSaved(0)
					if res.Size != size || res.BytesSent != size || res.Object.CRC32C != checksum.Update(0, content) || res.Resumable || name == "Bytes" && res.ID != "" {
						t.Errorf("Result = %+v", res)
					}
					if res.BytesResent != 0 || res.Retries != 0 || res.Resumed || res.Waited != 0 || res.BytesReread != 0 || res.Elapsed != 0 || w.saw(upload.Settling) != 0 {
						t.Errorf("nothing failed, and the source did not change: %+v", res)
					}
					if one := res.Requests == 1; one != (size <= 8*mib) || res.Requests != len(w.srv.Requests()) {
						t.Errorf("%d requests\n%s", res.Requests, w.trace())
					}
				})
			})
		}
	}
}

// TestBriefObject checks what an Uploader asks of an object that it makes in a single request. The object of a
// session is always complete.
func TestBriefObject(t *testing.T) {
	for _, brief := range []bool{false, true} {
		inBubbleWithMD5(t, nil, func(w *world) {
			up := w.uploader(func(o *upload.Options) { o.BriefObject = brief })
			for _, size := range []int64{1000, 8*mib + 1} {
				res, err := up.File(w.t.Context(), w.file(data(size)), spec)
				require.NoError(t, err)
				o := res.Object
				want := session.Object{Bucket: spec.Bucket, Name: spec.Object, Generation: o.Generation, Size: size, CRC32C: checksum.Update(0, data(size)), HasCRC32C: true, MD5: o.MD5}
				if o.Generation == 0 || len(o.MD5) != md5.Size || res.Unverified != nil {
					t.Errorf("brief %v, %d bytes: generation %d, MD5 %x, unverified %v", brief, size, o.Generation, o.MD5, res.Unverified)
				}
				if brief && size == 1000 {
					if !reflect.DeepEqual(*o, want) {
						t.Errorf("brief object: %+v, want %+v", *o, want)
					}
				} else if len(o.ACL) == 0 || o.Owner == "" || o.ContentType == "" || o.Created.IsZero() {
					t.Errorf("brief %v, %d bytes: the object is not complete: %+v", brief, size, *o)
				}
			}
		})
	}
}
