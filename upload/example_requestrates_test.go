package upload_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"gcsup/upload"
)

// This example uploads a file as the third of eight machines that upload to the same bucket. They
// make at most 4,000 requests per second together, and fewer while the bucket answers 429. Another
// process can begin with the rate that was found.
func ExampleRequestRates() {
	var rates upload.RequestRates
	rates.Share(2, 8) // machines count from 0
	rates.Limit(4000)
	var client *http.Client // adds the credentials
	up, err := upload.New(client, &upload.Options{RequestRates: &rates})
	if err != nil {
		log.Fatal(err)
	}
	result, err := up.File(context.Background(), "photo.jpg", upload.Spec{Bucket: "my-bucket", Object: "photo.jpg"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("uploaded %s, waited %v for the rate\n", result.Spec.URL(), result.Throttled)
	for bucket, rate := range rates.All() {
		fmt.Printf("%s: %.0f requests per second\n", bucket, rate.PerSecond())
	}
}
