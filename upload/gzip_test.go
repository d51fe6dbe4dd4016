package upload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/objectmeta"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

var zipped = upload.Spec{Bucket: "bkt", Object: "obj", Gzip: true}

// zippedParts makes files use a session with many requests.
func zippedParts(o *upload.Options) { o.Window, o.ChunkSize = int(q), q }

// text returns bytes that can be compressed to about two thirds.
func text(size int64) []byte {
	b := bytes.Clone(data(size))
	for i := range b {
		b[i] = "0123456789abcdefABCDEFGHIJKLMNOPQRSTUVWXYZ  etaoin\n    ,.-+#????"[b[i]%64]
	}
	return b
}

// wantUnzipped fails unless the object is the compressed content, with the attributes
// of a compressed object.
func (w *world) wantUnzipped(name string, content []byte, metadata bool) {
	w.t.Helper()
	raw, err := w.srv.ReadObject("bkt", name)
	if err != nil {
		w.t.Errorf("read %s: %v", name, err)
		return
	}
	zr, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		w.t.Errorf("%s: %v", name, err)
		return
	}
	got := bytes.NewBuffer(make([]byte, 0, len(content)+bytes.MinRead))
	if _, err := got.ReadFrom(zr); err != nil || !bytes.Equal(got.Bytes(), content) {
		w.t.Errorf("%s is %d bytes, %v, that are not the source's %d", name, got.Len(), err, len(content))
	}
	if zr.Name != "" || !zr.ModTime.IsZero() {
		w.t.Errorf("%s: the header has %q, %v", name, zr.Name, zr.ModTime)
	}
	want := ""
	if metadata {
		want = strconv.Itoa(len(content))
	}
	o, _ := w.srv.Object("bkt", name)
	if o.ContentEncoding != "gzip" || o.Metadata[objectmeta.UncompressedSize] != want {
		w.t.Errorf("%s: encoding %q, metadata %v", name, o.ContentEncoding, o.Metadata)
	}
}

// wantFile fails unless the object is content, or content compressed.
func (w *world) wantFile(content []byte, compressed bool) {
	w.t.Helper()
	if compressed {
		w.wantUnzipped("obj", content, true)
	} else {
		w.wantObject("obj", content)
	}
}

// TestGzip checks all ways to upload with sizes around the limits.
func TestGzip(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"empty": {}, "one byte": {'x'}, "text": text(q + 5), "zeros": make([]byte, 20*mib), "random": data(3*q + 1),
		"compressed before": zip(t, text(2*q)), "several requests": text(9 * q), "single request above 8 MiB": text(9 * mib), "a session": data(9 * mib),
	} {
		for how, with := range map[string]func(*upload.Options){"default": func(*upload.Options) {}, "small window": zippedParts} {
			if testing.Short() && name != "text" || name == "zeros" && testsize.Full(0, 1) == 1 || len(content) > int(4*mib) && (how == "small window" && testsize.Full(1, 0) == 0) {
				continue
			}
			t.Run(name+"/"+how, func(t *testing.T) {
				inBubble(t, &fakegcs.Options{}, func(w *world) {
					path := w.file(content)
					up := w.uploader(with, func(o *upload.Options) { o.DetectContentType = http.DetectContentType })
					check := func(what string, metadata bool, res *upload.Result, err error) {
						t.Helper()
						if err != nil {
							t.Fatalf("%s: %v\n%s", what, err, w.trace())
						}
						w.wantUnzipped("obj", content, metadata)
						w.wantSaved(0)
						o, _ := w.srv.Object("bkt", "obj")
						wantType := http.DetectContentType(content)
						if len(content) == 0 {
							wantType = "application/octet-stream"
						}
						if res.Size != int64(len(content)) || res.Object.Size != o.Size || res.BytesSent != o.Size || o.ContentType != wantType {
							t.Errorf("%s: %+v, %s", what, res, o.ContentType)
						}
					}
					res, err := up.File(w.t.Context(), path, zipped)
					check("File", true, res, err)
					if single := strings.Count(w.trace(), "insert"); how == "default" && (single == 1) != (name != "a session") {
						t.Errorf("%d single requests\n%s", single, w.trace())
					}
					for res, err := range up.Files(w.t.Context(), slices.Values([]upload.Job{{Path: path, Spec: zipped}}), nil) {
						check("Files", true, res, err)
					}
					res, err = up.Reader(w.t.Context(), pieces(content), zipped)
					check("Reader", false, res, err)

					w.mu.Lock()
					defer w.mu.Unlock()
					for _, e := range w.events {
						if s := e.Source; e.Path != "" && (s == nil || s.Size != int64(len(content)) || s.Committed > s.Sent || s.Sent > s.Size) {
							t.Errorf("event %+v with %+v", e, s)
						}
					}
				})
			})
		}
	}
}

func zip(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	_, err := zw.Write(content)
	require.NoError(t, errors.Join(err, zw.Close()))
	return b.Bytes()
}

// interruptZipped is interrupt for a compressed file.
func (w *world) interruptZipped(path string, at int64, with ...func(*upload.Options)) *upload.Result {
	w.t.Helper()
	stall := faults.Fault{Match: faults.Match{Op: faults.OpPut, From: at, To: at + 1}, Do: faults.Action{Effect: faults.EffectStall}}
	w.addFaults(stall)
	res := w.timeOut(path, zipped, with...)
	if !res.Resumable {
		w.t.Fatalf("interrupted upload: %+v\n%s", res, w.trace())
	}
	w.wantSaved(1)
	return res
}

// TestGzipFinished checks that a resume finds an object that the earlier process
// finished, even if this version of the program compresses the file to other bytes.
func TestGzipFinished(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, level := range []int{0, 1} {
		for name, lost := range map[string][]faults.Fault{
			"lost reply":              {{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectLoseReply}}},
			"lost reply, and session": {{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectLoseReply}}, {Match: faults.Match{Op: faults.OpQuery}, Skip: 1, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 410}}},
		} {
			t.Run(fmt.Sprint(name, " level ", level), func(t *testing.T) {
				inBubble(t, &fakegcs.Options{Faults: lost}, func(w *world) {
					content := text(6 * q)
					path := w.file(content)
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectStall}})
					w.timeOut(path, zipped, zippedParts)
					w.wantSaved(1)
					w.wantUnzipped("obj", content, true)
					before, _ := w.srv.Object("bkt", "obj")

					up := w.uploader(zippedParts)
					upload.SetGzipLevel(up, level)
					res, err := up.File(w.t.Context(), path, zipped)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					after, _ := w.srv.Object("bkt", "obj")
					if after.Generation != before.Generation || res.BytesSent != 0 || !res.Resumed {
						t.Errorf("%+v\n%s", res, w.trace())
					}
					w.wantSaved(0)
				})
			})
		}
	}
}
