package fakegcs_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// discardReply is a ResponseWriter without a connection.
type discardReply struct {
	header http.Header
	status int
}

func (w *discardReply) Header() http.Header         { return w.header }
func (w *discardReply) WriteHeader(status int)      { w.status = status }
func (w *discardReply) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkInsert inserts objects of 16 KiB as bench-many does, without a network.
func BenchmarkInsert(b *testing.B) {
	const boundary = "b0b0b0b0b0b0b0b0"
	payload := string(numbered(1, 16<<10))
	body := fmt.Sprintf("--%s\r\nContent-Type: application/json\r\n\r\n{\"crc32c\":%q}\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n%s\r\n--%s--\r\n",
		boundary, crc([]byte(payload)), boundary, payload, boundary)
	for _, test := range []struct {
		name string
		opts fakegcs.Options
	}{
		{"default", fakegcs.Options{}},
		{"discard, no MD5, no log", fakegcs.Options{Discard: true, NoMD5: true, KeepRequests: -1}},
		{"directory, no MD5, no log", fakegcs.Options{Dir: "+", NoMD5: true, KeepRequests: -1}},
	} {
		b.Run(test.name, func(b *testing.B) {
			opts := test.opts
			if opts.Dir != "" {
				opts.Dir = b.TempDir()
			}
			opts.Buckets = []fakegcs.Bucket{{Name: "bkt"}}
			gcs, err := fakegcs.New(&opts)
			require.NoError(b, err)
			defer gcs.Close()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r, err := http.NewRequest("POST", fmt.Sprintf("http://localhost/upload/storage/v1/b/bkt/o?uploadType=multipart&name=b%%2Ff%d", i%10000), io.NopCloser(strings.NewReader(body)))
				require.NoError(b, err)
				i++
				r.ContentLength = int64(len(body))
				r.Header["Content-Type"] = []string{"multipart/related; boundary=" + boundary}
				w := &discardReply{header: http.Header{}}
				gcs.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// Metadata of more than 1 MiB is refused, with the text that Google's clients want.
func TestMetadataIsTooLarge(t *testing.T) {
	w := newWorld(t, nil)
	const text = "Metadata part is too large"
	metadata := `{"metadata":{"k":"` + strings.Repeat("a", 2<<20) + `"}}`
	multipart := "--b\r\nContent-Type: application/json\r\n\r\n" + metadata + "\r\n--b\r\n\r\nbytes\r\n--b--"
	w.want(400, text, "POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=y", []byte(metadata), "Content-Type: application/json")
	w.want(400, text, "POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=y", []byte(multipart), "Content-Type: multipart/related; boundary=b")
	w.want(400, text, "PATCH", "/storage/v1/b/bkt", []byte(metadata))
}
