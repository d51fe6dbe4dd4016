package upload_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/oauth2"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// A client with its own credentials and the tuned transport, without an SDK.
func ExampleNewTransport() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()

	tokens := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "secret"}) // of a real program: one that refreshes
	transport := upload.NewTransport(nil)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: &oauth2.Transport{Source: tokens, Base: transport}}
	up, err := upload.New(client, &upload.Options{Endpoint: emulator.URL})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gcsup")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hello")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		log.Fatal(err)
	}
	result, err := up.File(context.Background(), path, upload.Spec{Bucket: "my-bucket", Object: "hello"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Object.Size, "bytes")
	// Output: 5 bytes
}
