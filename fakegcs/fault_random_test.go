package fakegcs_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// An uploader that only queries the offset after each error finishes under any random
// plan. The object is identical to the source, and committed bytes are never lost.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	base := uint64(time.Now().UnixNano())
	for i := range uint64(40) {
		seed := base + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			size := int(seed % uint64(6*q))
			list := faults.Random(seed, 12, int64(size))
			if again := faults.Random(seed, 12, int64(size)); !reflect.DeepEqual(list, again) {
				t.Error("the same seed returned another plan")
			}
			bubble(t, &fakegcs.Options{Faults: list}, func(w *world) {
				total := fmt.Sprint(size)
				var uri string
				for uri == "" {
					if a, err := w.try("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", nil); err == nil {
						uri = a.Header.Get("Location")
					}
				}
				committed, promised := 0, 0
				for tries := 0; ; tries++ {
					if tries > 500 {
						t.Fatalf("not done after %d tries; plan %+v", tries, w.gcs.FaultReport())
					}
					to := min(committed+q*(1+tries%3), size)
					if size-to < q {
						to = size
					}
					spec := chunkRange(committed, to, total)
					if committed == to { // only the finish is missing
						spec = "Content-Range: bytes */" + total
					}
					if a, err := w.try("PUT", uri, data(size)[committed:to], spec); err == nil && a.StatusCode == 200 {
						break
					}
					a, err := w.try("PUT", uri, nil, "Content-Range: bytes */*")
					if err != nil || a.StatusCode != 308 {
						if err == nil && a.StatusCode == 200 {
							break
						}
						continue
					}
					last := -1
					fmt.Sscanf(a.Header.Get("Range"), "bytes=0-%d", &last)
					if committed = last + 1; committed < promised || committed > size {
						t.Fatalf("%d bytes were committed, now %d", promised, committed)
					}
					promised = committed
				}
				w.holds("x", data(size))
			})
		})
	}
}
