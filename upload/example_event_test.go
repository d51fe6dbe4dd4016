package upload_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// Print the progress, and the committed part of it. With ChunkSize, the service
// commits each 4 MiB.
func ExampleEvent_progress() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	bar := io.Discard // os.Stderr
	up, err := upload.New(http.DefaultClient, &upload.Options{
		Endpoint:  emulator.URL,
		ChunkSize: 4 << 20,
		Observer: func(e upload.Event) { // of one upload: from one goroutine at a time
			switch {
			case e.Kind == upload.Started:
				fmt.Println("started", e.Spec.URL())
			case e.Kind == upload.Progress:
				fmt.Fprintf(bar, "\rsent %d of %d bytes, %d are committed", e.Sent, e.Size, e.Committed)
			case e.Kind.Terminal():
				fmt.Println(e.Kind, e.Result.Size>>20, "MiB in", e.Result.Requests, "requests")
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	data := strings.NewReader(strings.Repeat("x", 10<<20))
	if _, err := up.ReaderAt(context.Background(), data, data.Size(), "", upload.Spec{Bucket: "my-bucket", Object: "x"}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// started gs://my-bucket/x
	// done 10 MiB in 5 requests
}

// Count the bytes of all uploads of a program. Each event adds its changes, so that the
// counters need no memory of the uploads.
func ExampleEvent_counter() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	var sent, durable atomic.Int64 // or a counter and a gauge of a metrics library
	up, err := upload.New(http.DefaultClient, &upload.Options{
		Endpoint: emulator.URL,
		Observer: func(e upload.Event) {
			sent.Add(e.SentDelta)
			durable.Add(e.CommittedDelta)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"x", "y"} {
		if _, err := up.Bytes(context.Background(), make([]byte, 1000), upload.Spec{Bucket: "my-bucket", Object: name}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(sent.Load(), durable.Load())
	// Output: 2000 2000
}
