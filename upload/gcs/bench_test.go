package gcs_test

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// BenchmarkUpload uploads a file of 1 GiB over loopback in three ways: with one
// bare PUT of net/http that computes the CRC32C, which is the minimum for a checked
// upload; with this package and a durable store; and with the official library's
// Writer. It alternates between them, so that changes of the machine's speed affect
// all three. It reports each time as a multiple of the bare PUT.
func BenchmarkUpload(b *testing.B) {
	const size = 1 << 30
	ts := fakegcs.NewServer(b, &fakegcs.Options{CreateBuckets: true, Discard: true, NoMD5: true})
	dir := b.TempDir()
	path := filepath.Join(dir, "source")
	if err := fill(path, size); err != nil {
		b.Fatal(err)
	}
	store, err := session.OpenDir(filepath.Join(dir, "state"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	client, err := gcs.New(b.Context(), &gcs.Options{Endpoint: ts.URL, Anonymous: true})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	up, err := client.Uploader(&upload.Options{Store: store})
	if err != nil {
		b.Fatal(err)
	}
	official, err := storage.NewClient(b.Context(), option.WithEndpoint(ts.URL+"/storage/v1/"), option.WithoutAuthentication())
	if err != nil {
		b.Fatal(err)
	}
	defer official.Close()

	ways := []struct {
		name string
		send func() error
		took time.Duration
	}{
		{name: "bare PUT", send: func() error { return barePut(client.HTTP(), ts.URL, path) }},
		{name: "gcsup", send: func() error {
			_, err := up.File(b.Context(), path, upload.Spec{Bucket: "bench", Object: "gcsup"})
			return err
		}},
		{name: "storage.Writer", send: func() error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			w := official.Bucket("bench").Object("writer").NewWriter(b.Context())
			if _, err := io.Copy(w, f); err != nil {
				return err
			}
			return w.Close()
		}},
	}
	for i := range ways { // warm up
		if err := ways[i].send(); err != nil {
			b.Fatalf("%s: %v", ways[i].name, err)
		}
	}
	b.SetBytes(int64(len(ways)) * size)
	for b.Loop() {
		for i := range ways {
			start := time.Now()
			if err := ways[i].send(); err != nil {
				b.Fatalf("%s: %v", ways[i].name, err)
			}
			ways[i].took += time.Since(start)
		}
	}
	for _, w := range ways[1:] {
		b.ReportMetric(float64(w.took)/float64(ways[0].took), strings.ReplaceAll(w.name, " ", "-")+"/bare-PUT")
	}
	b.ReportMetric(float64(size)*float64(b.N)/ways[1].took.Seconds()/(1<<20), "gcsup-MiB/s")
}

func barePut(hc *http.Client, endpoint, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	req, err := http.NewRequest("POST", endpoint+"/upload/storage/v1/b/bench/o?uploadType=media&name=bare", io.TeeReader(f, sum))
	if err != nil {
		return err
	}
	req.ContentLength = info.Size()
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// fill writes a file of pseudo-random bytes.
func fill(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	x := uint64(1)
	for off := int64(0); off < size && err == nil; off += int64(len(block)) {
		for i := range block {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			block[i] = byte(x)
		}
		_, err = f.Write(block[:min(int64(len(block)), size-off)])
	}
	if err == nil {
		// gcsup syncs its source before it reads it. Without this Sync the first
		// upload would measure the disk.
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
