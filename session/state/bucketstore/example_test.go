package bucketstore_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// Two machines share a file system and a state bucket. The first one dies in the
// middle of an upload. The second one continues when the lease of the first has
// expired.
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

	ctx := context.Background()
	first := &machine{dies: make(chan struct{}), afterChunks: 2}
	go func() {
		_, err := first.uploader(ctx, emulator.URL).File(ctx, path, to)
		log.Fatalf("the first machine is not dead: %v", err)
	}()
	<-first.dies

	// Without this, File would wait for two minutes and up to two seconds, because the
	// service has times in whole seconds.
	emulator.Advance(2*time.Minute + 2*time.Second)
	second := &machine{}
	result, err := second.uploader(ctx, emulator.URL).File(ctx, path, to)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("continued at %d MiB, sent the other %d MiB\n", result.ResumedFrom>>20, result.BytesSent>>20)
	// Output:
	// continued at 8 MiB, sent the other 4 MiB
}

// machine is a machine with a network. After it has died, its requests do not arrive,
// and it gets no replies.
type machine struct {
	dies        chan struct{} // is closed when the machine dies; nil if it does not
	afterChunks int32         // number of chunks after which it dies
	chunks      atomic.Int32
}

// uploader opens the store, like each program that shares it.
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
	if m.dies != nil && req.Method == "PUT" && req.ContentLength > 0 && m.chunks.Add(1) == m.afterChunks+1 {
		close(m.dies)
	}
	select {
	case <-m.dies:
		select {} // for the rest of the program
	default:
	}
	return http.DefaultTransport.RoundTrip(req)
}
