package gcs_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"cloud.google.com/go/storage"

	"gcsup/fakegcs"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// A service with storage.Writer, before and after the change to upload.Writer. Only
// the lines that make the client and the Writer differ; Abort is new.
func ExampleNewUploader() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	os.Setenv("STORAGE_EMULATOR_HOST", emulator.URL)
	defer os.Unsetenv("STORAGE_EMULATOR_HOST")
	ctx := context.Background()

	before := func(name string, rows io.Reader) error {
		client, err := storage.NewClient(ctx)
		if err != nil {
			return err
		}
		w := client.Bucket("reports").Object(name).NewWriter(ctx)
		w.ContentType = "text/csv"
		if _, err := io.Copy(w, rows); err != nil {
			return err
		}
		return w.Close()
	}
	after := func(name string, rows io.Reader) error {
		up, err := gcs.NewUploader(ctx, nil)
		if err != nil {
			return err
		}
		w := up.NewWriter(ctx, upload.Spec{Bucket: "reports", Object: name})
		defer w.Abort()
		w.ContentType = "text/csv"
		if _, err := io.Copy(w, rows); err != nil {
			return err
		}
		return w.Close()
	}
	for name, export := range map[string]func(string, io.Reader) error{"before.csv": before, "after.csv": after} {
		if err := export(name, strings.NewReader("a,b\n1,2\n")); err != nil {
			log.Fatal(err)
		}
	}
	for _, name := range []string{"before.csv", "after.csv"} {
		o, _ := emulator.Object("reports", name)
		fmt.Println(name, o.Size, o.ContentType)
	}
	// Output:
	// before.csv 8 text/csv
	// after.csv 8 text/csv
}
