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

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/objectmeta"
	"gcsup/internal/testsize"
	"gcsup/session/state"
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
	if err := errors.Join(err, zw.Close()); err != nil {
		t.Fatal(err)
	}
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

// TestGzipResume checks that another process compresses again up to the committed
// offset, and sends the rest only.
func TestGzipResume(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := text(int64(testsize.Full(12, 6)) * q)
	for i, at := range []int64{0, q, 3*q + 5} {
		for by, resume := range map[string]func(*world, *upload.Uploader, string, string) (*upload.Result, error){
			"File": func(w *world, u *upload.Uploader, path, _ string) (*upload.Result, error) {
				return u.File(w.t.Context(), path, zipped)
			},
			"File without the setting": func(w *world, u *upload.Uploader, path, _ string) (*upload.Result, error) {
				return u.File(w.t.Context(), path, spec)
			},
			"Resume": func(w *world, u *upload.Uploader, _, id string) (*upload.Result, error) {
				return u.Resume(w.t.Context(), id)
			},
			"File with another metadata": nil,
		} {
			for _, window := range []int64{1, 4} {
				if testsize.Full(0, 1) == 1 && (window == 1) != (i%2 == 0) {
					continue
				}
				t.Run(fmt.Sprint(at, " by ", by, ", window ", window), func(t *testing.T) {
					inBubble(t, &fakegcs.Options{NoRunningHash: window != 1}, func(w *world) {
						path := w.file(content)
						first := w.interruptZipped(path, at, zippedParts)
						up := w.uploader(zippedParts, func(o *upload.Options) { o.Window = int(window * q) })
						if resume == nil {
							other := zipped
							other.Metadata = map[string]string{"k": "v"}
							if _, err := up.File(w.t.Context(), path, other); !errors.Is(err, state.ErrOptionsDiffer) {
								t.Errorf("error = %v, want ErrOptionsDiffer", err)
							}
							return
						}
						res, err := resume(w, up, path, first.ID)
						if err != nil {
							t.Fatalf("%v\n%s", err, w.trace())
						}
						w.wantUnzipped("obj", content, true)
						w.wantSaved(0)
						held := chunk.Floor(at)
						if !res.Resumed || res.ResumedFrom != held || res.BytesSent != res.Object.Size-held || res.Size != int64(len(content)) {
							t.Errorf("Result = %+v, want it resumed from %d\n%s", res, held, w.trace())
						}
						if held > 0 && res.BytesReread == 0 {
							t.Error("nothing was compressed again")
						}
						if n := w.saw(upload.Discarded) + w.saw(upload.Restarted); n != 0 {
							t.Errorf("%d new starts", n)
						}
					})
				})
			}
		}
	}
}

// TestGzipOtherCompressor checks that an upload starts over, with the options of the first run, and cancels its session, if this
// version of the program compresses the same file to other bytes. The simulation has other moments.
func TestGzipOtherCompressor(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := text(6 * q)
		path := w.file(content)
		w.interruptZipped(path, 2*q+5, zippedParts)
		up := w.uploader(zippedParts)
		upload.SetGzipLevel(up, 1)
		res, err := up.File(w.t.Context(), path, spec)
		if err != nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantUnzipped("obj", content, true)
		w.wantSaved(0)
		if res.Resumed || res.ResumedFrom != 0 || res.BytesSent != res.Object.Size || w.saw(upload.Discarded) != 1 || !strings.Contains(w.trace(), "cancel") {
			t.Errorf("Result = %+v, %d discarded\n%s", res, w.saw(upload.Discarded), w.trace())
		}
	})
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

// TestGzipDeterministic checks that the compressed bytes do not depend on the sizes
// of reads and writes: a file in memory, a file in blocks and a stream agree.
func TestGzipDeterministic(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := text(5*q + 7)
		path := w.file(content)
		var first []byte
		for i, do := range []func() error{
			func() error { _, err := w.uploader().File(w.t.Context(), path, zipped); return err },
			func() error { _, err := w.uploader(zippedParts).File(w.t.Context(), path, zipped); return err },
			func() error { _, err := w.uploader().Reader(w.t.Context(), pieces(content), zipped); return err },
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			got, err := w.srv.ReadObject("bkt", "obj")
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if !bytes.Equal(got, first) {
				t.Errorf("way %d makes other bytes", i)
			}
		}
	})
}
