package upload_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// An upload that is slow, then paused, and then as fast as possible.
func ExampleRateLimit() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()

	limit := upload.NewRateLimit(10_000) // bytes per second
	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: emulator.URL, RateLimit: limit})
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() {
		limit.SetLimit(0)
		time.AfterFunc(10*time.Millisecond, func() { limit.SetLimit(upload.Unlimited) })
	})
	result, err := up.Reader(context.Background(), bytes.NewReader(make([]byte, 10<<20)), upload.Spec{Bucket: "my-bucket", Object: "stream"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Size, "bytes")
	// Output: 10485760 bytes
}
