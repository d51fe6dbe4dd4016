package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"gcsup/internal/benchrun"
)

// fileBenchmark uploads one large file.
var fileBenchmark = benchrun.Benchmark{Name: "file", Flags: fileFlags, Comparisons: compareFile, Roles: roles}

var (
	fileSize    int64
	fileRate    int64
	fileLatency time.Duration
)

func fileFlags(f *flag.FlagSet) {
	gcsupFlag(f)
	f.Int64Var(&fileSize, "size", 1<<30, "bytes of the file")
	f.Int64Var(&fileRate, "rate", 20<<20, "bytes per second of each connection of the limited link")
	f.DurationVar(&fileLatency, "latency", 10*time.Millisecond, "delay of each reply of the limited link")
}

func compareFile(s *benchrun.Suite) ([]benchrun.Comparison, error) {
	file := filepath.Join(s.Dir, "file")
	if err := benchrun.Fill(file, fileSize); err != nil {
		return nil, err
	}
	var (
		loopback = benchrun.Server{}
		tls      = benchrun.Server{TLS: true}
		slow     = benchrun.Server{Latency: 50 * time.Millisecond}
		limited  = benchrun.Server{Latency: fileLatency, Rate: fileRate}
		narrow   = benchrun.Server{Latency: fileLatency, TotalRate: 8 * fileRate}
	)
	mib := float64(fileSize) / (1 << 20)
	usual := benchrun.Usual(mib, "MiB")
	counted := append(slices.Clip(usual), requests())
	half := time.Duration(float64(fileSize) / 2 / float64(8*fileRate) * float64(time.Second)) // in which the narrow link carries half of the file
	comparisons := []benchrun.Comparison{
		{Name: "loopback", Title: "over loopback", Ways: whole(loopback, file), Figures: usual},
		{Name: "tls", Title: "over loopback with TLS", Ways: whole(tls, file), Figures: usual},
		{Name: "latency", Title: "over loopback, 50 ms per reply", Ways: whole(slow, file), Figures: counted},
		{Name: "parallel", Title: "over loopback", Ways: inParts(loopback, file), Figures: counted},
		{Name: "connections", Title: "over loopback with TLS, by a multipart upload", Figures: usual, Ways: []benchrun.Way{
			role("bare PUT", tls, file),
			cp("1", tls, file, "--quiet", "--parallel=off"),
			cp("8", tls, file, "--quiet", "--parallel=8", "--parallel-by=multipart"),
			cp("64", tls, file, "--quiet", "--parallel=64", "--parallel-by=multipart"),
			cp("256", tls, file, "--quiet", "--parallel=256", "--parallel-by=multipart"),
		}},
		{Name: "limited", Title: fmt.Sprintf("at %d MiB/s per connection, %v per reply", fileRate>>20, fileLatency), Ways: inParts(limited, file), Figures: counted},
		{
			Name: "killed", Title: fmt.Sprintf("SIGKILL %v after the first reply, over a link of %d MiB/s, and a second run", half.Round(100*time.Millisecond), 8*fileRate>>20),
			Ways: resumable(narrow, file), Once: true, Do: killAfter(half), Figures: []benchrun.Figure{
				{Title: "MiB received", Of: func(r *benchrun.Run) (float64, error) {
					report, err := r.Server.Report()
					return float64(report.Received >> 20), err
				}},
				{Title: "objects left", Of: func(r *benchrun.Run) (float64, error) {
					report, err := r.Server.Report()
					return float64(max(0, report.Objects-1)), err
				}},
			},
		},
	}
	for i := range comparisons {
		comparisons[i].Title = fmt.Sprintf("%d MiB %s", fileSize>>20, comparisons[i].Title)
	}
	return comparisons, nil
}

// whole returns the ways that programs send a file by default.
func whole(server benchrun.Server, file string) []benchrun.Way {
	return []benchrun.Way{
		role("bare PUT", server, file),
		role("upload.File", server, file),
		cp("gcsup cp", server, file, "--quiet"),
		uploads("storage.Writer", server, job{Do: "storage.Writer with its own transport", Path: file}),
		curl(server, file),
	}
}

// inParts returns the ways to send a file over one connection and over several.
func inParts(server benchrun.Server, file string) []benchrun.Way {
	return append([]benchrun.Way{role("bare PUT", server, file)}, resumable(server, file)...)
}

// resumable returns the ways that continue in a second process.
func resumable(server benchrun.Server, file string) []benchrun.Way {
	return []benchrun.Way{
		cp("off", server, file, "--quiet", "--parallel=off"),
		cp("auto", server, file, "--quiet"),
		cp("8 multipart", server, file, "--quiet", "--parallel=8", "--parallel-by=multipart"),
		cp("8 compose", server, file, "--quiet", "--parallel=8", "--parallel-by=compose"),
		gcloud("gcloud", server, file, "False"),
		gcloud("gcloud composite", server, file, "True"),
	}
}

// role uploads a file in a way of this program.
func role(name string, server benchrun.Server, file string) benchrun.Way {
	return uploads(name, server, job{Do: name, Path: file})
}

// cp uploads a file with gcsup.
func cp(name string, server benchrun.Server, file string, flags ...string) benchrun.Way {
	return benchrun.Way{Name: name, Server: server, Command: func(_ string, n int) *exec.Cmd {
		return exec.Command(gcsup, slices.Concat([]string{"cp"}, flags, []string{file, fmt.Sprint("gs://bench/o", n)})...)
	}}
}

// curl computes no checksum.
func curl(server benchrun.Server, file string) benchrun.Way {
	return benchrun.Way{Name: "curl", Server: server, Optional: true, Command: func(endpoint string, n int) *exec.Cmd {
		return exec.Command("curl", "--silent", "--show-error", "--fail", "--request", "POST", "--upload-file", file,
			"--output", os.DevNull, fmt.Sprint(endpoint, "/upload/storage/v1/b/bench/o?uploadType=media&name=o", n))
	}}
}

// gcloud also compares MD5s, so that its emulator needs more time.
func gcloud(name string, server benchrun.Server, file, composite string) benchrun.Way {
	server.MD5 = true
	return benchrun.Way{Name: name, Server: server, Optional: true, Command: func(_ string, n int) *exec.Cmd {
		c := exec.Command("gcloud", "storage", "cp", file, fmt.Sprint("gs://bench/o", n))
		c.Env = []string{"CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED=" + composite}
		return c
	}}
}

// requests is the number of requests that an emulator received in a run.
func requests() benchrun.Figure {
	before := map[*benchrun.Process]int64{}
	return benchrun.Figure{Title: "requests", Of: func(r *benchrun.Run) (float64, error) {
		report, err := r.Server.Report()
		n := report.Requests - before[r.Server]
		before[r.Server] = report.Requests
		return float64(n), err
	}}
}

// killAfter returns a run that is killed a time after the first reply, and continued by
// another process.
func killAfter(d time.Duration) func(*benchrun.Suite, *benchrun.Run) error {
	return func(s *benchrun.Suite, r *benchrun.Run) error {
		first, err := s.StartClient(r)
		if err != nil {
			return err
		}
		defer first.Kill()
		err = first.Until("the first reply", func() (bool, error) {
			report, err := r.Server.Report()
			return report.Requests > 0, err
		})
		if err != nil {
			return err
		}
		time.Sleep(d)
		first.Kill()
		if err := s.Measure(r); err != nil {
			s.Fail("killed: second run of %s: %w", r.Way.Name, err)
		}
		return nil
	}
}
