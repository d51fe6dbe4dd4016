package upload_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/upload"
)

// tableStore is a state.Store in a table of a database, here a map. Processes that
// share the table resume each other's uploads of a shared file system. Package storetest
// tests a store.
type tableStore struct {
	mu      sync.Mutex        // stands for a transaction
	uploads map[string][]byte // CREATE TABLE uploads (id TEXT PRIMARY KEY, doc BLOB)
	locks   map[string]bool   // SELECT pg_try_advisory_lock(hashtext(id)): it ends with the connection, so with the process
}

var (
	_ state.Store       = (*tableStore)(nil)
	_ state.LockChecker = (*tableStore)(nil) // optional
)

// Load is SELECT doc FROM uploads WHERE id = $1.
func (s *tableStore) Load(_ context.Context, id string) (*state.Upload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.uploads[id]
	if !ok {
		return nil, fmt.Errorf("%w: %s", state.ErrNotFound, id)
	}
	t, err := state.Decode(data) // its errors wrap ErrCorrupt and ErrVersion
	if err == nil && t.ID != id {
		err = fmt.Errorf("%w: it has the ID %s", state.ErrCorrupt, t.ID)
	}
	return t, err
}

// Save is INSERT INTO uploads VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET doc =
// $2. The bytes are a secret: encrypt the column if others can read it.
func (s *tableStore) Save(_ context.Context, t *state.Upload) error {
	data, err := state.Encode(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads[t.ID] = data
	return nil
}

// List is SELECT id FROM uploads ORDER BY id.
func (s *tableStore) List(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.uploads)), nil
}

// Delete is DELETE FROM uploads WHERE id = $1.
func (s *tableStore) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uploads, id)
	return nil
}

func (s *tableStore) Lock(_ context.Context, id string) (unlock func(), err error) {
	if !state.ValidID(id) {
		return nil, fmt.Errorf("%w: %q", state.ErrNotFound, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[id] {
		return nil, &state.HeldError{} // its fields are optional
	}
	s.locks[id] = true
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.locks, id)
	}), nil
}

func (s *tableStore) Locked(_ context.Context, id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locks[id], nil
}

// A program with its own store instead of a directory.
func Example_ownStore() {
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

	store := &tableStore{uploads: map[string][]byte{}, locks: map[string]bool{}}
	ctx, interrupt := context.WithCancel(context.Background())
	up, err := upload.New(http.DefaultClient, &upload.Options{
		Endpoint: emulator.URL,
		Store:    store,
		Observer: func(e upload.Event) {
			if e.Kind == upload.Waiting {
				interrupt()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	spec := upload.Spec{Bucket: "my-bucket", Object: "disk.img"}
	_, err = up.File(ctx, path, spec)
	fmt.Println(errors.Is(err, context.Canceled), "rows:", len(store.uploads))

	result, err := up.File(context.Background(), path, spec)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("resumed from", result.ResumedFrom, "rows:", len(store.uploads))
	// Output:
	// true rows: 1
	// resumed from 4194304 rows: 0
}
