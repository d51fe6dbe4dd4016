package gcs_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"testing"

	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// TestGzip checks with the official client that a compressed object has its
// attributes and its content, in each way to upload.
func TestGzip(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	w := newAttributeWorld(t)
	for name, do := range w.ways() {
		if (name == "batch" || name == "large in batch" || name == "resumed by File") && testsize.Full(0, 1) == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			spec := upload.Spec{Bucket: "bkt", Object: name, ContentType: "text/x-mine", Gzip: true, Metadata: map[string]string{"k": "v"}}
			res, content, err := do(spec)
			if err != nil {
				t.Fatal(err)
			}
			o, a := w.object(t, name)
			size := fmt.Sprint(len(content))
			if name == "stream" {
				size = "" // not known when the session starts
			}
			if a.ContentEncoding != "gzip" || a.ContentType != "text/x-mine" || a.Metadata["k"] != "v" || a.Metadata[session.UncompressedSizeKey] != size {
				t.Errorf("attributes %+v", a)
			}
			for _, compressed := range []bool{false, true} {
				r, err := o.ReadCompressed(compressed).NewReader(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				r.Close()
				if err != nil {
					t.Fatal(err)
				}
				if compressed {
					if a.Size != int64(len(got)) || a.Size != res.Object.Size || a.CRC32C != crc32.Checksum(got, crc32.MakeTable(crc32.Castagnoli)) {
						t.Errorf("%d compressed bytes, the object has %d", len(got), a.Size)
					}
					zr, err := gzip.NewReader(bytes.NewReader(got))
					if err != nil {
						t.Fatal(err)
					}
					if got, err = io.ReadAll(zr); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(got, content) {
					t.Errorf("compressed %v: %d bytes that are not the %d of the source", compressed, len(got), len(content))
				}
			}
			client, err := session.NewClient(nil, w.url)
			if err != nil {
				t.Fatal(err)
			}
			stat := client.Stat(t.Context(), spec)
			if stat.Object == nil || stat.Object.Gzip != (size != "") || stat.Object.Gzip && stat.Object.UncompressedSize != int64(len(content)) {
				t.Errorf("Stat: %+v", stat.Object)
			}
		})
	}
}
