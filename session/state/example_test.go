package state_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/session/state"
)

// This example saves a session and resumes it, as another process would.
func ExampleAcquire() {
	srv := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer srv.Close()
	client, err := session.NewClient(srv.Client(), srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "uploads")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := state.OpenDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	lease, err := state.Acquire(ctx, store, "backup-2026")
	if err != nil {
		log.Fatal(err)
	}
	spec := session.Spec{Bucket: "my-bucket", Object: "disk.img"}
	err = lease.Release(ctx, &state.Upload{
		ID: "backup-2026", Endpoint: client.Endpoint(), Spec: spec, SourcePath: "/data/disk.img", Source: chunk.Identity{Size: 1 << 20},
		Session: state.Session{URI: client.Start(ctx, spec, 1<<20).URI, Created: time.Now()},
	})
	if err != nil {
		log.Fatal(err)
	}

	lease, err = state.Acquire(ctx, store, "backup-2026")
	if err != nil {
		log.Fatal(err) // state.ErrInUse: another process holds the lock
	}
	saved, err := lease.Load(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := state.Adopt(client, saved); err != nil {
		log.Fatal(err)
	}
	fmt.Println(saved.Spec.URL(), client.Query(ctx, saved.URI).Status)
	_ = lease.Release(ctx, nil)
	// Output:
	// gs://my-bucket/disk.img 308
}

// This example locks and loads a saved upload. The store is still empty.
func ExampleOpenDir() {
	dir, err := os.MkdirTemp("", "uploads")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := state.OpenDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	unlock, err := store.Lock(ctx, "backup-2026")
	if err != nil {
		log.Fatal(err) // state.ErrInUse: another process holds the lock
	}
	defer unlock()

	_, err = store.Load(ctx, "backup-2026")
	fmt.Println(err)
	fmt.Println(errors.Is(err, state.ErrNotFound))
	// Output:
	// no such saved upload: backup-2026
	// true
}
