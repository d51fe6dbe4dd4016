package gcs_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gcsup/fakegcs"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// Upload a file. Another process can resume the upload. For the real service, omit
// Endpoint and Anonymous; New then finds Application Default Credentials.
func Example() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	dir, err := os.MkdirTemp("", "gcsup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "greeting.txt")
	if err := os.WriteFile(path, []byte("hello, world\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	client, err := gcs.New(ctx, &gcs.Options{Endpoint: emulator.URL, Anonymous: true})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store, err := state.OpenDir(filepath.Join(dir, "state"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	up, err := client.Uploader(&upload.Options{Store: store})
	if err != nil {
		log.Fatal(err)
	}
	result, err := up.File(ctx, path, upload.Spec{Bucket: "my-bucket", Object: "greeting.txt"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Spec.URL(), result.Object.Size, "bytes")
	// Output: gs://my-bucket/greeting.txt 13 bytes
}
