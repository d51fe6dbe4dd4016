package manifest_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"gcsup/internal/sourcefile"
	"gcsup/upload"
	"gcsup/upload/manifest"
)

// The second run of a batch uploads the files that the first one did not finish.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			panic(err)
		}
	}
	for run := range 2 {
		fmt.Println("run", run+1)
		if err := batch(filepath.Join(dir, "manifest.jsonl"), jobs(dir, "a.txt", "b.txt", "c.txt")); err != nil {
			panic(err)
		}
	}
	// Output:
	// run 1
	// a.txt done
	// b.txt failed
	// c.txt done
	// 0 were finished
	// run 2
	// b.txt failed
	// 2 were finished
}

func batch(path string, jobs iter.Seq[upload.Job]) error {
	m, err := manifest.Open(path, "https://storage.googleapis.com") // or Uploader.Endpoint
	if err != nil {
		return err
	}
	defer m.Close()
	for job, err := range m.Skip(context.Background(), jobs) {
		if err != nil {
			return err
		}
		r := manifest.Record{Status: manifest.Done, Path: job.Path, Bucket: job.Spec.Bucket, Object: job.Spec.Object}
		if r.Source, err = sourcefile.StatIdentity(job.Path); err != nil {
			return err
		}
		// Upload the file here.
		if job.Spec.Object == "b.txt" {
			r.Status, r.Reason = manifest.Failed, "connection refused"
		}
		fmt.Println(job.Spec.Object, r.Status)
		if err := m.Record(r); err != nil {
			return err
		}
	}
	fmt.Println(m.Stats().Finished, "were finished")
	return m.Close()
}

// jobs yields jobs that are sorted by the names of their objects.
func jobs(dir string, names ...string) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for _, name := range names {
			if !yield(upload.Job{Path: filepath.Join(dir, name), Spec: upload.Spec{Bucket: "my-bucket", Object: name}}) {
				return
			}
		}
	}
}
