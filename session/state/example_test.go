package state_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"gcsup/session/state"
)

// This example locks and loads a saved upload. The store is still empty.
func ExampleOpenDir() {
	dir, err := os.MkdirTemp("", "sessions")
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
	fmt.Println(errors.Is(err, state.ErrNoToken))
	// Output:
	// no such saved upload: backup-2026
	// true
}
