package upload_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/upload"
)

// A program that resumes the uploads of earlier processes when it starts.
func ExampleUploader_Saved() {
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

	// The first process ends in the middle of an upload.
	ctx, end := context.WithCancel(context.Background())
	inProcess(emulator.URL, filepath.Join(dir, "state"), func(up *upload.Uploader) {
		_, err := up.File(ctx, path, upload.Spec{Bucket: "my-bucket", Object: "disk.img"})
		fmt.Println("first process:", err != nil)
	}, func(e upload.Event) {
		if e.Kind == upload.Waiting {
			end()
		}
	})

	// The second process has only the directory.
	inProcess(emulator.URL, filepath.Join(dir, "state"), func(up *upload.Uploader) {
		ctx := context.Background()
		for saved, err := range up.Saved(ctx) {
			if err != nil {
				log.Println(saved.ID, err) // a saved upload that cannot be used
				continue
			}
			holding, err := up.Query(ctx, saved.ID)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(filepath.Base(saved.Path), "to", saved.Spec.URL(), "is", holding.State, "with", holding.Stored>>20, "of", saved.Size>>20, "MiB")
			result, err := up.Resume(ctx, saved.ID)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("sent the other", result.BytesSent>>20, "MiB")
		}
	}, nil)
	// Output:
	// first process: true
	// disk.img to gs://my-bucket/disk.img is open with 4 of 10 MiB
	// sent the other 6 MiB
}

// inProcess simulates one process with an Uploader.
func inProcess(endpoint, dir string, run func(*upload.Uploader), observer func(upload.Event)) {
	store, err := state.OpenDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: endpoint, Store: store, Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	run(up)
}
