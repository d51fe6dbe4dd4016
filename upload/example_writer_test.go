package upload_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// Use a Writer instead of storage.Writer. If writeRows fails, there is no object.
func ExampleUploader_NewWriter() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: emulator.URL})
	if err != nil {
		log.Fatal(err)
	}

	export := func(ctx context.Context, writeRows func(io.Writer) error) error {
		w := up.NewWriter(ctx, upload.Spec{Bucket: "reports", Object: "today.csv"})
		defer w.Abort() // does nothing after Close
		w.Metadata = map[string]string{"job": "nightly"}
		if err := writeRows(w); err != nil {
			return err
		}
		return w.Close()
	}

	err = export(context.Background(), func(w io.Writer) error {
		fmt.Fprintln(w, "apples,3")
		return io.ErrUnexpectedEOF // of the database, for example
	})
	_, ok := emulator.Object("reports", "today.csv")
	fmt.Println(err, ok)

	err = export(context.Background(), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "apples,3")
		return err
	})
	object, ok := emulator.Object("reports", "today.csv")
	fmt.Println(err, ok, object.Size, object.ContentType)
	// Output:
	// unexpected EOF false
	// <nil> true 9 text/plain; charset=utf-8
}
