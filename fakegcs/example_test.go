package fakegcs_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// The official Go client uploads to fakegcs. Instead of passing the two options, a
// program can set STORAGE_EMULATOR_HOST to the server's address.
func Example() {
	srv := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true}) // in a test, with its t and without the next line
	defer srv.Close()

	ctx := context.Background()
	client, err := storage.NewClient(ctx, option.WithEndpoint(srv.URL+"/storage/v1/"), option.WithoutAuthentication())
	if err != nil {
		panic(err)
	}
	defer client.Close()
	w := client.Bucket("demo").Object("greeting").NewWriter(ctx)
	fmt.Fprint(w, "hello")
	if err := w.Close(); err != nil {
		panic(err)
	}

	o, _ := srv.Object("demo", "greeting")
	fmt.Println(o.Size, o.CRC32C)
	// Output: 5 mnG7TA==
}

// A connection breaks in the middle of an upload. The client queries the offset and
// resumes there.
func Example_resume() {
	srv := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{{
		Match: faults.Match{Op: faults.OpFinalize},
		Do:    faults.Action{Effect: faults.EffectCutRequest, Bytes: 300_000},
	}}})
	defer srv.Close()
	content := strings.Repeat("0123456789", 50_000)

	start, err := http.Post(srv.URL+"/upload/storage/v1/b/demo/o?uploadType=resumable&name=x", "", nil)
	if err != nil {
		panic(err)
	}
	session := start.Header.Get("Location")
	put := func(body, contentRange string) *http.Response {
		req, _ := http.NewRequest("PUT", session, strings.NewReader(body))
		req.Header.Set("Content-Range", contentRange)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println("the connection broke")
			return nil
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	put(content, "bytes 0-499999/500000")
	resp := put("", "bytes */500000")
	fmt.Println(resp.StatusCode, resp.Header.Get("Range"))
	resp = put(content[262144:], "bytes 262144-499999/500000")
	fmt.Println(resp.StatusCode, srv.FaultReport()[0].Fired)
	// Output:
	// the connection broke
	// 308 bytes=0-262143
	// 200 1
}
