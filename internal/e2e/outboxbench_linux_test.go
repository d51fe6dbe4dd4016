package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
	"gcsup/upload/outbox"
)

// benchOutbox starts outbox run on dir, with a server that calls seen for each request.
func benchOutbox(b *testing.B, dir string, opts fakegcs.Options) (srv *fakegcs.TestServer, pid int) {
	b.Helper()
	opts.CreateBuckets, opts.NoMD5, opts.Discard, opts.KeepRequests = true, true, true, -1
	srv = fakegcs.NewServer(b, &opts)
	cmd := exec.Command(program, "outbox", "run", dir, "gs://demo/in", "-q", "--endpoint", srv.URL, "--state-dir", b.TempDir())
	cmd.Env, cmd.Stderr = environment(), os.Stderr
	return srv, testprocess.Start(b, cmd).PID()
}

// BenchmarkOutboxFirstByte measures the time from the end of a put until the first request for the file
// arrives at the server.
func BenchmarkOutboxFirstByte(b *testing.B) {
	dir, source := testsize.DiskDir(b), filepath.Join(b.TempDir(), "source")
	require.NoError(b, os.WriteFile(source, make([]byte, 16<<10), 0o600))
	var mu sync.Mutex
	arrived := map[string]time.Time{}
	_, _ = benchOutbox(b, dir, fakegcs.Options{OnRequest: func(r fakegcs.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := arrived[r.Object]; !ok {
			arrived[r.Object] = r.Time
		}
	}})
	var waits []time.Duration
	put := func(name string) {
		require.NoError(b, outbox.Put(dir, source, name))
		complete := time.Now()
		for deadline := complete.Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			at, ok := arrived["in/"+name]
			mu.Unlock()
			if ok {
				waits = append(waits, at.Sub(complete))
				return
			}
			if time.Now().After(deadline) {
				b.Fatalf("%s is not uploaded", name)
			}
		}
	}
	put("first") // the process starts
	waits = nil
	for i := range 200 {
		put(fmt.Sprint("file", i))
		time.Sleep(time.Duration(i%10) * time.Millisecond)
	}
	slices.Sort(waits)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(waits[len(waits)/2]), "ms-median")
	b.ReportMetric(ms(waits[len(waits)*99/100]), "ms-p99")
	b.ReportMetric(ms(waits[len(waits)-1]), "ms-max")
}

// backlog is the number of files of BenchmarkOutboxBacklog.
const backlog = 100_000

// BenchmarkOutboxBacklog measures the memory of the process with a backlog: after the scan in an outage, and
// after a time in which files are uploaded.
func BenchmarkOutboxBacklog(b *testing.B) {
	dir := testsize.MemDir(b)
	for i := range backlog {
		path := filepath.Join(dir, fmt.Sprintf("segment-%03d/file-with-a-usual-name-%07d.log", i/1000, i))
		if i%1000 == 0 {
			require.NoError(b, os.Mkdir(filepath.Dir(path), 0o700))
		}
		require.NoError(b, os.WriteFile(path, make([]byte, 1<<10), 0o600))
	}
	srv, pid := benchOutbox(b, dir, fakegcs.Options{Faults: []faults.Fault{
		{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}},
	}})
	began := time.Now()
	for deadline := began.Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s, err := outbox.ReadStatus(dir)
		if err == nil && s.Running != nil && s.Backlog.Files == backlog && s.Settling == 0 {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("the directory is not scanned: %+v, %v", s, err)
		}
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-to-scan")
	time.Sleep(10 * time.Second)
	b.ReportMetric(memory(b, pid, "VmHWM"), "MiB-in-outage")
	b.ReportMetric(memory(b, pid, "RssAnon"), "MiB-in-outage-without-program")
	srv.ClearFaults()
	time.Sleep(5 * time.Second)
	before, start := srv.Stats().Ops[faults.OpInsert], time.Now()
	time.Sleep(20 * time.Second)
	b.ReportMetric(float64(srv.Stats().Ops[faults.OpInsert]-before)/time.Since(start).Seconds(), "files/s")
	b.ReportMetric(memory(b, pid, "VmHWM"), "MiB-while-uploading")
	b.ReportMetric(memory(b, pid, "RssAnon"), "MiB-while-uploading-without-program")
	b.ReportMetric(0, "ns/op")
}

// memory returns a value of /proc/PID/status in MiB: VmHWM is the peak of all memory, and RssAnon the memory
// without the pages of the program's file.
func memory(b *testing.B, pid int, name string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindStringSubmatch(string(text))
	if m == nil {
		b.Fatalf("no %s in %s", name, strings.ReplaceAll(string(text), "\n", " "))
	}
	kib, err := strconv.ParseFloat(m[1], 64)
	require.NoError(b, err)
	return kib / 1024
}
