package tree_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"gcsup/upload"
	"gcsup/upload/tree"
)

// A directory and the contents of another one, in the order of the service. A
// link out of the tree is reported.
func Example() {
	dir, err := os.MkdirTemp("", "gcsup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"photos/a.jpg", "photos/a/b.jpg", "photos/a.tmp", "docs/x.txt", "docs/y.txt"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "docs/z.txt")); err != nil {
		log.Fatal(err)
	}

	sources := tree.Sources(dir+"/photos", dir+"/docs/.")
	spec := upload.Spec{Bucket: "my-bucket", Object: "backup"}
	t, err := tree.New(sources, spec, &tree.Options{Sorted: true, Exclude: []string{"*.tmp"}})
	if err != nil {
		log.Fatal(err)
	}
	for job := range t.Walk(context.Background()) {
		fmt.Println(job.Spec.URL(), job.Size, errors.Is(job.Err, tree.ErrSymlink))
	}
	// Output:
	// gs://my-bucket/backup/photos/a.jpg 12 false
	// gs://my-bucket/backup/photos/a/b.jpg 14 false
	// gs://my-bucket/backup/x.txt 10 false
	// gs://my-bucket/backup/y.txt 10 false
	// gs://my-bucket/backup/z.txt 0 true
}

// The paths of a list, such as the output of find -print0.
func ExampleList() {
	paths := strings.NewReader("doc.go\x00./doc.go\x00missing.go\x00")
	jobs, err := tree.List(context.Background(), paths, 0, upload.Spec{Bucket: "my-bucket"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for job := range jobs {
		fmt.Println(job.Spec.URL(), job.Err)
	}
	// Output:
	// gs://my-bucket/doc.go <nil>
	// gs://my-bucket/missing.go lstat missing.go: no such file or directory
}
