package tree_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

var template = upload.Spec{Bucket: "my-bucket"}

// makeFiles makes dirs directories with files empty files each.
func makeFiles(tb testing.TB, root string, dirs, files int) {
	tb.Helper()
	for d := range dirs {
		dir := filepath.Join(root, fmt.Sprintf("directory-%04d", d))
		require.NoError(tb, os.MkdirAll(dir, 0o755))
		for f := range files {
			require.NoError(tb, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%06d.txt", f)), nil, 0o644))
		}
	}
}

// BenchmarkWalk walks 50,000 files with Walk, and with filepath.WalkDir and lstat,
// which is the minimum work of any walk. It reports the ratio of the times.
func BenchmarkWalk(b *testing.B) {
	const dirs, files = 50, 1000
	root := b.TempDir()
	makeFiles(b, root, dirs, files)
	for _, bench := range []struct {
		name string
		opts tree.Options
	}{
		{"unsorted", tree.Options{}},
		{"sorted", tree.Options{Sorted: true}},
		{"patterns", tree.Options{Include: []string{"*.txt"}, Exclude: []string{"*.tmp", ".git"}}},
		{"shard-0-of-10", tree.Options{Shard: tree.Shard{Index: 0, Count: 10}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			t := newTree(b, []tree.Source{{Path: root}}, template, &bench.opts)
			b.ReportAllocs()
			var ours, walkDir time.Duration
			for b.Loop() {
				start := time.Now()
				n := 0
				for job := range t.Walk(b.Context()) {
					if job.Err != nil {
						b.Fatal(job.Err)
					}
					n++
				}
				if n != dirs*files && bench.opts.Shard.Count == 0 {
					b.Fatal(n, "files")
				}
				ours += time.Since(start)

				b.StopTimer()
				start = time.Now()
				if err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
					if err == nil {
						_, err = d.Info()
					}
					return err
				}); err != nil {
					b.Fatal(err)
				}
				walkDir += time.Since(start)
				b.StartTimer()
			}
			total := float64(b.N) * dirs * files
			b.ReportMetric(total/ours.Seconds(), "files/s")
			b.ReportMetric(total/walkDir.Seconds(), "WalkDir-files/s")
			b.ReportMetric(ours.Seconds()/walkDir.Seconds(), "time/WalkDir")
		})
	}
}

// BenchmarkList reads a list of 50,000 files.
func BenchmarkList(b *testing.B) {
	const dirs, files = 50, 1000
	b.Chdir(b.TempDir())
	makeFiles(b, ".", dirs, files)
	var text strings.Builder
	for d := range dirs {
		for f := range files {
			fmt.Fprintf(&text, "directory-%04d/file-%06d.txt\n", d, f)
		}
	}
	for _, sorted := range []bool{false, true} {
		b.Run(fmt.Sprintf("sorted=%v", sorted), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				jobs, err := tree.List(b.Context(), strings.NewReader(text.String()), '\n', template, &tree.Options{Sorted: sorted})
				require.NoError(b, err)
				for job := range jobs {
					if job.Err != nil {
						b.Fatal(job.Err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*dirs*files/b.Elapsed().Seconds(), "files/s")
		})
	}
}
