package fleet_test

import (
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

// TestManyFiles submits many files and checks that the memory does not grow with their number. It
// logs the memory and disk of the server.
func TestManyFiles(t *testing.T) {
	w := newWorld(t, nil)
	q := w.queue()
	submit := func(files, large int) (took time.Duration, heap uint64) {
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var peak atomic.Uint64
		began := time.Now()
		done, err := fleet.Submit(t.Context(), q, fleet.Submission{
			Jobs: madeUp(files, large, func(i int) {
				if i%(files/20) == 0 {
					runtime.GC()
					runtime.ReadMemStats(&now)
					peak.Store(max(peak.Load(), now.HeapAlloc))
				}
			}),
			Listing: upload.Listing{Bucket: bucket}, Uploader: w.uploader(),
		})
		if err != nil || done.Files+done.Queued != int64(files) {
			t.Fatalf("submit: %+v, %v", done, err)
		}
		return time.Since(began), peak.Load() - min(peak.Load(), before.HeapAlloc)
	}
	files := testsize.Full(200_000, 20_000)
	submit(1000, 100)
	took, heap := submit(files, files/100)
	memory, disk := w.nats.Memory()
	s := w.status(q)
	t.Logf("%d files, of which 1 in 100 is large: %v, %d messages, %d KiB more heap in this process with the server; JetStream has %d KiB in memory and %d KiB on disk",
		files, took.Round(time.Millisecond), s.Tasks, heap>>10, memory>>10, disk>>10)
	if s.Waiting.Files < files {
		t.Errorf("%d files wait, want %d", s.Waiting.Files, files)
	}
	if heap > 64<<20 {
		t.Errorf("the heap grew by %d MiB, want at most 64", heap>>20)
	}
}

// madeUp yields jobs for files that do not exist. Some of them are large.
func madeUp(files, large int, each func(i int)) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for i := range files {
			each(i)
			name := fmt.Sprintf("dir-%04d/file-%07d", i/1000, i)
			job := upload.Job{Path: "/data/" + name, Spec: spec(name), Size: 16 << 10, ModTime: time.Unix(1e9, 0)}
			if i%(files/large) == 0 {
				job.Size = 1 << 30
			}
			if !yield(job) {
				return
			}
		}
	}
}
