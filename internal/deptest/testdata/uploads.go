// Uploads is plain.go with the calls of a program that embeds package upload: see
// TestCoreSize.
package main

import (
	"context"
	"net/http"
	"os"

	"gcsup/session/state"
	"gcsup/upload"
)

func main() {
	go http.ListenAndServe("", nil)
	r, err := http.Post(os.Args[1], "", os.Stdin)
	if err != nil {
		panic(err)
	}
	r.Body.Close()

	ctx := context.Background()
	store, err := state.OpenDir(os.Args[1])
	if err != nil {
		panic(err)
	}
	up, err := upload.New(&http.Client{Transport: upload.NewTransport(nil)}, &upload.Options{Store: store})
	if err != nil {
		panic(err)
	}
	spec := upload.Spec{Bucket: "bucket", Object: "object"}
	up.File(ctx, os.Args[1], spec)
	up.Reader(ctx, os.Stdin, spec)
	up.NewWriter(ctx, spec).ReadFrom(os.Stdin)
	for saved := range up.Saved(ctx) {
		up.Resume(ctx, saved.ID)
	}
}
