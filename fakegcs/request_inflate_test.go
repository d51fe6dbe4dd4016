package fakegcs_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

func zipped(t *testing.T, p []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(p); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// A body that is compressed for the transfer is stored decompressed.
func TestGzipInFlight(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	w := newWorld(t, nil)
	const inFlight = "Content-Encoding: gzip"
	content := bytes.Repeat(data(3 * q)[:q+q/2], 2)
	check := func(name string, a answer, want []byte) {
		t.Helper()
		got, err := w.gcs.ReadObject("bkt", name)
		if a.StatusCode != 200 || err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d %s; %d bytes, %v", name, a.StatusCode, a.body, len(got), err)
		}
		if o, _ := w.gcs.Object("bkt", name); o.Metadata["a"] != "" && o.Metadata["a"] != "1" {
			t.Errorf("%s: metadata %v", name, o.Metadata)
		}
	}
	const media = "/upload/storage/v1/b/bkt/o?uploadType=media&name="
	check("media", w.do("POST", media+"media", zipped(t, content), inFlight), content)
	check("empty", w.do("POST", media+"empty", zipped(t, nil), inFlight), nil)
	check("kept", w.do("POST", media+"kept&contentEncoding=gzip", zipped(t, content), inFlight), zipped(t, content))
	check("xml", w.do("PUT", "/bkt/xml", zipped(t, content), inFlight), zipped(t, content))
	related := "--b\r\nContent-Type: application/json\r\n\r\n{\"name\":\"related\",\"metadata\":{\"a\":\"1\"}}\r\n--b\r\nContent-Type: text/x\r\n\r\n" + string(content) + "\r\n--b--"
	check("related", w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", zipped(t, []byte(related)), inFlight, "Content-Type: multipart/related; boundary=b"), content)
	check("whole", w.do("PUT", w.start("whole"), zipped(t, content), inFlight), content)

	uri := w.start("chunks")
	for _, to := range []int{q, 2 * q} {
		if a := w.do("PUT", uri, zipped(t, content[to-q:to]), inFlight, chunkRange(to-q, to, "*")); a.StatusCode != 308 || a.Header.Get("Range") != fmt.Sprintf("bytes=0-%d", to-1) {
			t.Errorf("chunk: %d %v", a.StatusCode, a.Header)
		}
	}
	check("chunks", w.do("PUT", uri, zipped(t, content[2*q:]), inFlight, chunkRange(2*q, 3*q, fmt.Sprint(3*q))), content)

	// If the stream breaks, multiples of 256 KiB are committed.
	uri = w.start("broken")
	w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 2*q + 9}})
	if _, err := w.try("PUT", uri, zipped(t, content), inFlight); err == nil {
		t.Error("the request was not cut")
	}
	if got := w.committed(uri); got != "bytes=0-524287" {
		t.Errorf("committed %q", got)
	}
	if a := w.do("PUT", uri, []byte("this is not gzip"), inFlight, chunkRange(2*q, 3*q, fmt.Sprint(3*q))); a.StatusCode/100 != 4 {
		t.Errorf("a body that is not gzip: %d", a.StatusCode)
	}
	if got := w.committed(uri); got != "bytes=0-524287" {
		t.Errorf("committed after a body that is not gzip: %q", got)
	}
	w.want(308, "", "PUT", uri, nil, inFlight, "Content-Range: bytes */*")
}
