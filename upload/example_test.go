package upload_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// An upload that is interrupted, and resumed by the next call.
func ExampleUploader_File() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{
		// The service fails after 4 MiB, once.
		{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 4 << 20}},
	}})
	defer emulator.Close()
	dir, err := os.MkdirTemp("", "gcsup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(path, make([]byte, 10<<20), 0o600); err != nil {
		log.Fatal(err)
	}
	store, err := state.OpenDir(filepath.Join(dir, "state"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	spec := upload.Spec{Bucket: "my-bucket", Object: "disk.img"}
	ctx, interrupt := context.WithCancel(context.Background())
	up, err := upload.New(http.DefaultClient, &upload.Options{
		Endpoint: emulator.URL,
		Store:    store,
		Observer: func(e upload.Event) {
			if e.Kind == upload.Waiting {
				interrupt() // the user presses Ctrl-C
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := up.File(ctx, path, spec)
	fmt.Println(errors.Is(err, context.Canceled), result.Resumable)

	result, err = up.File(context.Background(), path, spec)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("resumed from", result.ResumedFrom, "sent", result.BytesSent, "of", result.Size)
	// Output:
	// true true
	// resumed from 4194304 sent 6291456 of 10485760
}

// A stream of unknown length.
func ExampleUploader_Reader() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()

	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: emulator.URL})
	if err != nil {
		log.Fatal(err)
	}
	result, err := up.Reader(context.Background(), strings.NewReader("from a pipe"), upload.Spec{Bucket: "my-bucket", Object: "stream"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Object.Size, "bytes")
	// Output: 11 bytes
}

// Upload a directory, but only the files that the bucket does not have.
func ExampleUploader_Files() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	dir, err := os.MkdirTemp("", "gcsup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: emulator.URL})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	spec := upload.Spec{Bucket: "my-bucket", Object: "backup/a.txt"}
	if _, err := up.File(ctx, filepath.Join(dir, "a.txt"), spec); err != nil {
		log.Fatal(err)
	}

	spec.Object = "backup" // the prefix of all names
	source := tree.Source{Path: dir}
	files, err := tree.New([]tree.Source{source}, spec, &tree.Options{Sorted: true})
	if err != nil {
		log.Fatal(err)
	}
	opts := &upload.BatchOptions{
		Skip:    upload.SkipExisting,
		Listing: &upload.Listing{Bucket: "my-bucket", Prefix: "backup/"},
		Sizes:   files.Sizes(ctx),
	}
	lines := map[string]string{}
	for result, err := range up.Files(ctx, files.Walk(ctx), opts) {
		switch {
		case err != nil:
			lines[result.Spec.URL()] = err.Error() // the other files are uploaded
		case result.Skipped != upload.SkipNothing:
			lines[result.Spec.URL()] = result.Skipped.String()
		default:
			lines[result.Spec.URL()] = "uploaded"
		}
	}
	fmt.Println(lines)
	// Output: map[gs://my-bucket/backup/a.txt:exists gs://my-bucket/backup/b.txt:uploaded]
}
