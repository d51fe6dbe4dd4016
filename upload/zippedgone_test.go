package upload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"testing"

	"gcsup/chunk"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload"
)

// loseZipped interrupts a compressed file in parts before its multipart upload is completed, and aborts that.
func (w *world) loseZipped(path string) {
	w.t.Helper()
	w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Do: faults.Action{Effect: faults.EffectStall}})
	w.timeOut(path, zipped, streamParts)
	w.wantSaved(1)
	w.abortAll()
}

// TestZippedInPartsRefusedRemoval resumes a compressed file whose multipart upload is gone, with a version of the program
// that compresses it to another size. It starts another multipart upload, and starts over after that. Of the two, the one
// that the service refuses to abort stays on record.
func TestZippedInPartsRefusedRemoval(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubbleWithMD5(t, slowly, func(w *world) {
		content := data(zippedLarge)
		path := w.file(content)
		w.loseZipped(path)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsAbort}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
		up := w.uploader(streamParts)
		upload.SetGzipLevel(up, 6)
		res, err := up.File(w.t.Context(), path, zipped)
		if err != nil || res.Leftover == nil || w.saw(upload.Discarded) != 1 {
			t.Fatalf("%+v, %v, %d discarded\n%s", res, err, w.saw(upload.Discarded), w.trace())
		}
		w.wantUnzipped("obj", content, true)
		w.wantSaved(1)
		if n := w.multipartUploads(); n != 1 { // this also ends the fault
			t.Errorf("%d multipart uploads", n)
		}
		w.pruneRemoved(up)
	})
}

// TestZippedInPartsLonger resumes a compressed file whose multipart upload is gone, with a version of the program that
// compresses it to more bytes. The earlier bytes ended where a part may end, so that the known parts are the same. No part
// of the other bytes is sent before the upload starts over.
func TestZippedInPartsLonger(t *testing.T) {
	t.Parallel()
	skipShort(t)
	size := func(n int64) int64 {
		var b bytes.Buffer
		zw, err := gzip.NewWriterLevel(&b, gzip.HuffmanOnly)
		if err == nil {
			_, err = zw.Write(data(n))
		}
		require.NoError(t, errors.Join(err, zw.Close()))
		return int64(b.Len())
	}
	n := zippedLarge
	want := chunk.Floor(size(n))
	for i := 0; size(n) != want; i++ {
		if n += want - size(n); i == 5 {
			t.Fatalf("no beginning of the data is compressed to %d bytes", want)
		}
	}
	content := data(n)
	inBubbleWithMD5(t, slowly, func(w *world) {
		path, plain := w.file(content), w.http.Transport
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("partNumber") == "6" {
				t.Error("a part is sent that the earlier upload did not have")
			}
			return plain.RoundTrip(req)
		})}
		w.loseZipped(path)
		up := w.uploader(streamParts)
		upload.SetGzipLevel(up, 6)
		res, err := up.File(w.t.Context(), path, zipped)
		if err != nil || w.saw(upload.Discarded) != 1 || res.Parts == nil || res.Parts.Count != 5 {
			t.Fatalf("%+v, %v, %d discarded\n%s", res, err, w.saw(upload.Discarded), w.trace())
		}
		w.wantZipped(content)
	})
}

// TestZippedInPartsThenOneConnection checks that the Result describes no parts if the upload starts over with one
// connection.
func TestZippedInPartsThenOneConnection(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubbleWithMD5(t, slowly, func(w *world) {
		content := data(zippedLarge)
		path := w.file(content)
		w.interruptZippedParts(path)
		up := w.uploader()
		upload.SetGzipLevel(up, 1)
		res, err := up.File(w.t.Context(), path, zipped)
		if err != nil || res.Parts != nil || res.Resumed || w.saw(upload.Discarded) != 1 {
			t.Errorf("%+v, %v, %d discarded\n%s", res, err, w.saw(upload.Discarded), w.trace())
		}
		w.wantZipped(content)
	})
}
