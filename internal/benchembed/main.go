// Command benchembed measures what an upload costs a program that embeds package
// upload: streams of 10 MiB, many streams at a time, one stream with slow replies
// in memory and in a spool, and small objects from memory. Beside each it runs a bare request of net/http and
// the official library's Writer. Package benchrun describes how they are compared.
//
//	go run ./internal/benchembed
package main

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/internal/benchrun"
)

var (
	memory  = flag.Int64("memory", 0, "Options.Memory of package upload, in bytes")
	window  = flag.Int("window", 0, "Options.Window of package upload, in bytes")
	streams = flag.Int("streams", 50, "streams at a time")
	objects = flag.Int("objects", 5000, "small objects")
)

func main() {
	roles := map[string]func([]string) error{}
	for name, w := range ways {
		roles[name] = func(args []string) error { return run(w, args) }
	}
	benchrun.Main(roles, compare)
}

const delay = 20 * time.Millisecond // of a reply

var (
	loopback = benchrun.Server{}
	slow     = benchrun.Server{Latency: delay}
	limited  = benchrun.Server{Emulator: true, Latency: delay, TotalRate: 250 << 20}     // 2 Gbit/s
	fast     = benchrun.Server{Emulator: true, Latency: delay, TotalRate: 1_250_000_000} // 10 Gbit/s
)

func compare(s *benchrun.Suite) error {
	for _, b := range []struct {
		name             string
		server           benchrun.Server
		uploads, workers int // workers upload at a time
		size             int64
		ways             []string
	}{
		{"stream", loopback, 200, 1, 10 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"streams", slow, *streams, *streams, 64 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"limited", limited, *streams, *streams, 16 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"fast", fast, *streams, *streams, 64 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"one", slow, 1, 1, 512 << 20, []string{"bare PUT", "upload.Reader", "spooled Reader", "storage.Writer"}},
		{"spool", limited, 1, 1, 512 << 20, []string{"bare PUT", "upload.Reader", "spooled Reader"}},
		{"small", loopback, *objects, 32, 16 << 10, []string{"bare insert", "upload.Bytes", "upload.Reader", "storage.Writer"}},
	} {
		c := benchrun.Comparison{
			Name: b.name, Title: fmt.Sprintf("%s: %d uploads of %d KiB, %d at a time, %v per reply", b.name, b.uploads, b.size>>10, b.workers, b.server.Latency),
			Work: float64(int64(b.uploads)*b.size) / (1 << 20), Unit: "MiB",
			Extra: func(r benchrun.Run) (float64, error) {
				return strconv.ParseFloat(strings.TrimSpace(string(r.Output)), 64)
			},
			ExtraTitle: "allocated KB/upload",
		}
		if b.server.TotalRate > 0 {
			c.Title += fmt.Sprintf(", all at %d MiB/s", b.server.TotalRate>>20)
		}
		if b.size < 1<<20 {
			c.Work, c.Unit = float64(b.uploads), "upload"
		}
		for _, name := range b.ways {
			c.Ways = append(c.Ways, benchrun.Way{Name: name, Server: b.server, Command: func(endpoint string, _ int) *exec.Cmd {
				return benchrun.Role(name, endpoint, fmt.Sprint(b.uploads), fmt.Sprint(b.workers), fmt.Sprint(b.size))
			}})
		}
		if err := s.Compare(c); err != nil {
			return err
		}
	}
	return nil
}

// run uploads in one way, and prints how many kilobytes each upload allocated.
func run(w way, args []string) error {
	var uploads, workers int
	var size int64
	if _, err := fmt.Sscan(strings.Join(args[1:], " "), &uploads, &workers, &size); err != nil {
		return err
	}
	ctx := context.Background()
	upload, err := w(ctx, args[0])
	if err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	names := make(chan string, uploads)
	for i := range uploads {
		names <- fmt.Sprint("o", i)
	}
	close(names)
	var group sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		group.Go(func() {
			for name := range names {
				if err := upload(ctx, name, size); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	runtime.ReadMemStats(&after)
	fmt.Printf("%.1f\n", float64(after.TotalAlloc-before.TotalAlloc)/1000/float64(uploads))
	return <-errs
}
