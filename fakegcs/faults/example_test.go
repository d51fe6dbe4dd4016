package faults_test

import (
	"fmt"
	"net/http"
	"strings"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// The server refuses the first listing of a bucket, and answers the next.
func Example() {
	plan, err := faults.Parse(strings.NewReader(`[
	  {"match": {"op": "list"}, "do": {"effect": "status", "status": 503}}
	]`))
	if err != nil {
		panic(err)
	}
	srv := fakegcs.NewServer(nil, &fakegcs.Options{Faults: plan})
	defer srv.Close()
	if err := srv.CreateBucket(fakegcs.Bucket{Name: "demo"}); err != nil {
		panic(err)
	}
	for range 2 {
		resp, err := http.Get(srv.URL + "/storage/v1/b/demo/o")
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	for _, f := range srv.FaultReport() {
		fmt.Println(f.Fault.Do.Effect, f.Fired)
	}
	// Output:
	// 503
	// 200
	// status 1
}
