package bucket_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"gcsup/fakegcs"
	"gcsup/internal/bucket"
	"gcsup/session"
)

// This example lists the objects of a bucket, two on each page.
func ExampleList() {
	srv := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer srv.Close()
	client, err := session.NewClient(srv.Client(), srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, name := range []string{"a", "b", "c"} {
		r := client.Insert(ctx, session.Spec{Bucket: "my-bucket", Object: name}, 0, 0, strings.NewReader(""))
		if r.Object == nil {
			log.Fatal(r.Refusal())
		}
	}

	query := bucket.Query{Bucket: "my-bucket", MaxResults: 2}
	for {
		page, r := bucket.List(ctx, client, query)
		if page == nil {
			log.Fatal(r.Refusal())
		}
		for _, o := range page.Objects {
			fmt.Println(o.Name)
		}
		if query.PageToken = page.NextPageToken; query.PageToken == "" {
			return
		}
		fmt.Println("next page")
	}
	// Output:
	// a
	// b
	// next page
	// c
}
