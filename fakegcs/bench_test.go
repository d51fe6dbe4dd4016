package fakegcs_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// BenchmarkUpload uploads 256 MiB in 16 MiB chunks over loopback, into each
// kind of server and, as the baseline, into a bare handler that
// discards the body. Client and server share the process, so compare with the
// baseline: "x-bare" is the time in units of the baseline's.
func BenchmarkUpload(b *testing.B) {
	const chunk, chunks = 64 * q, 16
	payload := data(chunk)
	run := func(b *testing.B, handler http.Handler, start func(url string) string) float64 {
		srv := httptest.NewServer(handler)
		defer srv.Close()
		b.SetBytes(chunk * chunks)
		for b.Loop() {
			uri := start(srv.URL)
			for i := range chunks {
				total := "*"
				if i == chunks-1 {
					total = fmt.Sprint(chunk * chunks)
				}
				req, err := http.NewRequest("PUT", uri, bytes.NewReader(payload))
				require.NoError(b, err)
				req.ContentLength = chunk
				req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", i*chunk, (i+1)*chunk-1, total))
				resp, err := plainClient.Do(req)
				require.NoError(b, err)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 308 && resp.StatusCode != 200 {
					b.Fatal(resp.Status)
				}
			}
		}
		return b.Elapsed().Seconds() / float64(b.N)
	}
	var bare float64
	b.Run("bare", func(b *testing.B) {
		bare = run(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			buf := make([]byte, q)
			for {
				if _, err := r.Body.Read(buf); err != nil {
					return
				}
			}
		}), func(url string) string { return url })
	})
	for _, test := range []struct {
		name string
		opts fakegcs.Options
	}{
		{"discard", fakegcs.Options{Discard: true, NoMD5: true}},
		{"memory", fakegcs.Options{NoMD5: true}},
		{"temporary file", fakegcs.Options{NoMD5: true, Memory: -1}},
		{"directory", fakegcs.Options{NoMD5: true, Dir: "+"}},
		{"discard+md5", fakegcs.Options{Discard: true}},
		{"directory+md5", fakegcs.Options{Dir: "+"}},
	} {
		b.Run(test.name, func(b *testing.B) {
			if test.opts.Dir != "" {
				test.opts.Dir = b.TempDir()
			}
			gcs, err := fakegcs.New(&test.opts)
			require.NoError(b, err)
			defer gcs.Close()
			require.NoError(b, gcs.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
			took := run(b, gcs, func(url string) string {
				resp, err := plainClient.Post(url+"/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", "", nil)
				require.NoError(b, err)
				resp.Body.Close()
				return resp.Header.Get("Location")
			})
			if bare > 0 {
				b.ReportMetric(took/bare, "x-bare")
			}
		})
	}
}
