//go:build unix

package fakegcs_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// BenchmarkServer measures a server process alone: its CPU time per GiB and its peak
// memory. The sizes in discard mode show that the cost is linear: "x-1GiB" is the CPU
// time per byte, relative to an upload of 1 GiB. The 100 uploads run at the same time.
// With FAKEGCS_BENCH_GIB=1 they have 1 GiB each, and need 100 GiB of disk.
func BenchmarkServer(b *testing.B) {
	each := int64(16 << 20)
	if os.Getenv("FAKEGCS_BENCH_GIB") == "1" {
		each = 1 << 30
	}
	var first float64 // CPU seconds per GiB
	for _, test := range []struct {
		name    string
		mode    string
		uploads int
		size    int64
	}{
		{"discard/1x1GiB", "discard", 1, 1 << 30},
		{"discard/1x4GiB", "discard", 1, 1 << 32},
		{fmt.Sprintf("discard/100x%dMiB", each>>20), "discard", 100, each},
		{"directory/1x1GiB", "directory", 1, 1 << 30},
		{fmt.Sprintf("directory+md5/100x%dMiB", each>>20), "directory+md5", 100, each},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(int64(test.uploads) * test.size)
			var cpu, peak float64
			for b.Loop() {
				state := uploadTo(b, test.mode, test.uploads, test.size)
				cpu += (state.UserTime() + state.SystemTime()).Seconds()
				peak = max(peak, float64(state.SysUsage().(*syscall.Rusage).Maxrss))
			}
			if runtime.GOOS == "darwin" { // in bytes instead of KiB
				peak /= 1 << 10
			}
			gib := float64(test.uploads) * float64(test.size) / (1 << 30)
			perGiB := cpu / float64(b.N) / gib
			if first == 0 {
				first = perGiB
			}
			b.ReportMetric(perGiB, "server-cpu-s/GiB")
			if test.mode == "discard" && test.uploads == 1 {
				b.ReportMetric(perGiB/first, "x-1GiB")
			}
			b.ReportMetric(peak/(1<<10), "server-peak-MiB")
		})
	}
}

// uploadTo starts a server process, runs uploads at the same time, in chunks of 16 MiB,
// and returns the state of the process with its resource usage.
func uploadTo(b *testing.B, mode string, uploads int, size int64) *os.ProcessState {
	url, emulator := startEmulator(b, b.TempDir(), mode)
	var wg sync.WaitGroup
	for i := range uploads {
		wg.Go(func() {
			resp, err := http.Post(fmt.Sprintf("%s/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x%d", url, i), "", nil)
			if err != nil {
				b.Error(err)
				return
			}
			resp.Body.Close()
			for at := int64(0); at < size; at += 64 * q {
				end := min(at+64*q, size)
				req, _ := http.NewRequest("PUT", resp.Header.Get("Location"), zeros(end-at))
				req.ContentLength = end - at
				req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", at, end-1, size))
				resp, err := plainClient.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if end == size && resp.StatusCode != 200 {
					b.Error(resp.Status)
				}
			}
		})
	}
	wg.Wait()
	emulator.Kill()
	return emulator.State()
}
