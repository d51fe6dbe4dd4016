package bucketstore_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/session/bucketstore"
	"gcsup/upload"
)

// Two machines share a file system and a state bucket. The first one dies in the middle of
// an upload. The second one continues when the lease of the first has run out.
func Example() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	dir, err := os.MkdirTemp("", "gcsup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(path, make([]byte, 12<<20), 0o600); err != nil {
		log.Fatal(err)
	}
	to := upload.Spec{Bucket: "my-bucket", Object: "disk.img"}

	ctx, power := context.WithCancel(context.Background())
	first := &machine{dead: ctx}
	first.chunk = func(n int32) {
		if n == 3 {
			power() // is cut
		}
	}
	if _, err := first.uploader(ctx, emulator.URL).File(ctx, path, to); err == nil {
		log.Fatal("the first machine is not dead")
	}

	// Without this, File would wait for two minutes.
	emulator.Advance(2 * time.Minute)
	second := &machine{dead: context.Background()}
	result, err := second.uploader(context.Background(), emulator.URL).File(context.Background(), path, to)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("continued at %d MiB, sent the other %d MiB\n", result.ResumedFrom>>20, result.BytesSent>>20)
	// Output:
	// continued at 8 MiB, sent the other 4 MiB
}

// machine is a machine with a network. Without power, it sends nothing.
type machine struct {
	dead   context.Context
	chunk  func(n int32) // is called before the nth request with data; may be nil
	chunks atomic.Int32
}

// uploader opens the store, as each program does that shares it.
func (m *machine) uploader(ctx context.Context, endpoint string) *upload.Uploader {
	hc := &http.Client{Transport: m}
	client, err := session.NewClient(hc, endpoint)
	if err != nil {
		log.Fatal(err)
	}
	// Each machine has the key, for example from a secret manager.
	block, err := aes.NewCipher(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		log.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		log.Fatal(err)
	}
	store, err := bucketstore.Open(ctx, client, "my-state", "uploads", &bucketstore.Options{AEAD: aead})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range store.Warnings() {
		log.Print(w)
	}
	up, err := upload.New(hc, &upload.Options{Endpoint: endpoint, Store: store, ChunkSize: 4 << 20})
	if err != nil {
		log.Fatal(err)
	}
	return up
}

// RoundTrip sends a request.
func (m *machine) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == "PUT" && req.ContentLength > 0 && m.chunk != nil {
		m.chunk(m.chunks.Add(1))
	}
	if m.dead.Err() != nil {
		return nil, errors.New("no power")
	}
	return http.DefaultTransport.RoundTrip(req)
}
