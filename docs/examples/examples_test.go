package examples

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// emulator starts an emulator with the given faults.
func emulator(t *testing.T, faults ...faults.Fault) *fakegcs.TestServer {
	t.Helper()
	return fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, Faults: faults})
}

// uploader returns an Uploader for the emulator.
func uploader(t *testing.T, srv *fakegcs.TestServer, opts upload.Options) *upload.Uploader {
	t.Helper()
	opts.Endpoint = srv.URL
	up, err := upload.New(srv.Client(), &opts)
	if err != nil {
		t.Fatal(err)
	}
	return up
}

// cutAfter is an outage after the first n bytes of an object.
func cutAfter(n int64) faults.Fault {
	return faults.Fault{
		Match: faults.Match{Op: faults.OpPut},
		Do:    faults.Action{Effect: faults.EffectStatusAfter, Status: http.StatusServiceUnavailable, Bytes: n},
	}
}

// content returns n bytes, of which no two pieces of 256 KiB are equal.
func content(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i>>18 ^ i)
	}
	return data
}

// write writes a file, and returns its path.
func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// wantObject checks the bytes of an object.
func wantObject(t *testing.T, srv *fakegcs.TestServer, bucket, name string, want []byte) {
	t.Helper()
	got, err := srv.ReadObject(bucket, name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("gs://%s/%s has %d bytes, %v; want the %d bytes of the source", bucket, name, len(got), err, len(want))
	}
}
