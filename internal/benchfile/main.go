// Command benchfile uploads one large file with a bare PUT of net/http that computes
// the CRC32C, with package upload, with the command gcsup over one connection and in parts,
// with the official library's Writer, and with curl and gcloud if they are installed.
// Package benchrun describes how they are compared.
//
//	go build -o bin/gcsup ./cmd/gcsup && go run ./internal/benchfile -gcsup bin/gcsup
package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"gcsup/internal/benchrun"
)

var (
	gcsup   = flag.String("gcsup", "gcsup", "`binary` of gcsup")
	size    = flag.Int64("size", 1<<30, "bytes of the file")
	rate    = flag.Int64("rate", 20<<20, "bytes per second of each connection of the limited link")
	latency = flag.Duration("latency", 10*time.Millisecond, "delay of each reply of the limited link")
)

func main() { benchrun.Main(roles, compare) }

func compare(s *benchrun.Suite) error {
	file := filepath.Join(s.Dir, "file")
	if err := benchrun.Fill(file, *size); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // gcsup would wait until the file is that old
	// gcsup may send the file in parts if the replies are slow. Only the emulator can join
	// parts.
	slow := benchrun.Server{Emulator: true, Latency: 50 * time.Millisecond}
	limited := benchrun.Server{Emulator: true, Latency: *latency, Rate: *rate}
	requests := requestCounter{}
	for _, c := range []benchrun.Comparison{
		{Name: "loopback", Title: "over loopback", Ways: whole(benchrun.Server{}, file)},
		{Name: "tls", Title: "over loopback with TLS", Ways: whole(benchrun.Server{TLS: true}, file)},
		{Name: "latency", Title: "over loopback, 50 ms per reply", Ways: whole(slow, file), ExtraTitle: "requests", Extra: requests.next},
		{Name: "parallel", Title: "over loopback", Ways: inParts(benchrun.Server{Emulator: true}, file), ExtraTitle: "requests", Extra: requests.next},
		{Name: "connections", Title: "over loopback with TLS, by a multipart upload", Ways: connections(benchrun.Server{Emulator: true, TLS: true}, file)},
		{Name: "limited", Title: fmt.Sprintf("at %d MiB/s per connection, %v per reply", *rate>>20, *latency), Ways: inParts(limited, file),
			ExtraTitle: "requests", Extra: requests.next},
	} {
		c.Title = fmt.Sprintf("%s: %d MiB %s", c.Name, *size>>20, c.Title)
		c.Work, c.Unit = float64(*size)/(1<<20), "MiB"
		if err := s.Compare(c); err != nil {
			return err
		}
	}
	return killed(s, file)
}

// whole returns the ways that programs send a file by default.
func whole(server benchrun.Server, file string) []benchrun.Way {
	return []benchrun.Way{
		asRole("bare PUT", server, file, "bare"),
		asRole("upload.File", server, file, "upload"),
		command("gcsup cp", server, file),
		asRole("storage.Writer", server, file, "writer"),
		curl(server, file),
	}
}

// inParts returns the ways to send a file over one connection and over several.
func inParts(server benchrun.Server, file string) []benchrun.Way {
	return append([]benchrun.Way{asRole("bare PUT", server, file, "bare")}, resumable(server, file)...)
}

// connections returns the ways to send a file over different numbers of connections.
func connections(server benchrun.Server, file string) []benchrun.Way {
	ways := []benchrun.Way{asRole("bare PUT", server, file, "bare"), command("1", server, file, "--parallel=off")}
	for _, n := range []string{"8", "64", "256"} {
		ways = append(ways, command(n, server, file, "--parallel="+n, "--parallel-by=multipart"))
	}
	return ways
}

// resumable returns the ways that continue in a second process.
func resumable(server benchrun.Server, file string) []benchrun.Way {
	return []benchrun.Way{
		command("off", server, file, "--parallel=off"),
		command("auto", server, file),
		command("8 multipart", server, file, "--parallel=8", "--parallel-by=multipart"),
		command("8 compose", server, file, "--parallel=8", "--parallel-by=compose"),
		gcloud("gcloud", server, file, "False"),
		gcloud("gcloud composite", server, file, "True"),
	}
}

// requestCounter has the number of requests that each emulator has received.
type requestCounter map[string]float64

// next returns the number of requests of a run.
func (c requestCounter) next(r benchrun.Run) (float64, error) {
	st, err := readStats(r.Endpoint)
	before := c[r.Endpoint]
	c[r.Endpoint] = 0
	for _, count := range st.Ops {
		c[r.Endpoint] += float64(count)
	}
	return c[r.Endpoint] - before, err
}
