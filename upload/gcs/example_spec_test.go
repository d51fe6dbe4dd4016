package gcs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"cloud.google.com/go/storage"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload/gcs"
)

// Upload in a program whose other functions have the types of the official library.
func ExampleNewSpec() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	ctx := context.Background()
	client, err := gcs.New(ctx, &gcs.Options{Endpoint: emulator.URL, Anonymous: true})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	up, err := client.Uploader(nil)
	if err != nil {
		log.Fatal(err)
	}
	save := func(attrs *storage.ObjectAttrs, conditions *storage.Conditions, content string) (*storage.ObjectAttrs, error) {
		spec, err := gcs.NewSpec(attrs, conditions)
		if err != nil {
			return nil, err
		}
		result, err := up.Reader(ctx, strings.NewReader(content), spec)
		return gcs.ObjectAttrs(result.Object), err
	}

	attrs := &storage.ObjectAttrs{Bucket: "reports", Name: "today.csv", ContentType: "text/csv"}
	made, err := save(attrs, &storage.Conditions{DoesNotExist: true}, "a,b\n1,2\n")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.Name, made.Size, made.ContentType)

	// The object exists now.
	_, err = save(attrs, &storage.Conditions{DoesNotExist: true}, "a,b\n3,4\n")
	fmt.Println(errors.Is(err, session.ErrPrecondition))

	// An upload cannot set the owner.
	_, err = save(&storage.ObjectAttrs{Bucket: "reports", Name: "copy.csv", Owner: made.Owner}, nil, "")
	fmt.Println(err)

	// The client of the official library has the same endpoint and credentials.
	official, err := client.Storage(ctx)
	if err != nil {
		log.Fatal(err)
	}
	read, err := official.Bucket("reports").Object("today.csv").Attrs(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(read.Generation == made.Generation)
	// Output:
	// today.csv 8 text/csv
	// true
	// invalid request: an upload cannot set Owner
	// true
}
