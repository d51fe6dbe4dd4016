package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// wantZipped fails unless the object is the compressed content, and nothing else is left.
func (w *world) wantZipped(content []byte) {
	w.t.Helper()
	w.wantUnzipped("obj", content, true)
	w.wantNothing()
}

// TestZippedInPartsMade checks that a resume finds the object that the earlier process made, even if this version of the
// program compresses the file to other bytes.
func TestZippedInPartsMade(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, level := range []int{0, 1} {
		lost := faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Do: faults.Action{Effect: faults.EffectLoseReply}}
		stall := faults.Fault{Match: faults.Match{Op: faults.OpGet}, Skip: 1, Do: faults.Action{Effect: faults.EffectStall}}
		inBubble(t, &fakegcs.Options{Faults: []faults.Fault{lost, stall}}, func(w *world) {
			content := data(zippedLarge)
			path := w.file(content)
			w.timeOut(path, zipped, streamParts)
			w.wantSaved(1)
			before, _ := w.srv.Object("bkt", "obj")
			up := w.uploader(streamParts)
			upload.SetGzipLevel(up, level)
			res, err := up.File(w.t.Context(), path, zipped)
			if err != nil || !res.Resumed || res.BytesSent != 0 || res.BytesReread != 0 || res.Object.Generation != before.Generation {
				t.Errorf("%+v, %v\n%s", res, err, w.trace())
			}
			w.wantZipped(content)
		})
	}
}

// TestZippedInPartsOfAReader sends compressed bytes that are in no file. If they have no name, or are read slowly, they
// are sent over one connection.
func TestZippedInPartsOfAReader(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for _, test := range []struct {
		name  string
		pause time.Duration
		why   string
	}{
		{name: "row 17"},
		{name: "", why: "it is not saved"},
		{name: "row 18", pause: 11 * time.Second, why: "its first bytes took more than 10s"},
	} {
		inBubble(t, slowly, func(w *world) {
			up := w.uploader(streamParts)
			send := func(ctx context.Context) (*upload.Result, error) {
				return up.ReaderAt(ctx, &slowReaderAt{ReaderAt: bytes.NewReader(content), pause: test.pause}, zippedLarge, test.name, zipped)
			}
			resumed := int64(0)
			if test.why == "" {
				ctx, stop := context.WithTimeout(w.t.Context(), 3*time.Second)
				defer stop()
				if res, err := send(ctx); !res.Resumable {
					t.Fatalf("%+v, %v", res, err)
				}
				resumed = w.storedParts()
			}
			res, err := send(w.t.Context())
			if err != nil || (res.Parts != nil) != (test.why == "") || res.ResumedFrom != resumed || (resumed > 0) != (test.why == "") {
				t.Errorf("%q: %+v, %v\n%s", test.name, res, err, w.trace())
			}
			if why := w.causes(upload.Warning); test.why != "" && (len(why) != 1 || !strings.Contains(why[0], test.why)) {
				t.Errorf("%q: warnings %q", test.name, why)
			}
			w.wantZipped(content)
		})
	}
}

// slowReaderAt pauses before its first bytes are read.
type slowReaderAt struct {
	io.ReaderAt
	pause time.Duration
}

func (r *slowReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if at == 0 && len(p) > 4096 { // not for the type of the content
		time.Sleep(r.pause)
	}
	return r.ReaderAt.ReadAt(p, at)
}

// TestZippedInPartsReplaced checks that a part which another client replaced is compressed and sent again.
func TestZippedInPartsReplaced(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content, plain := data(zippedLarge), w.http.Transport
		var once sync.Once
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodGet && req.URL.Query().Has("uploadId") {
				once.Do(func() {
					other, err := http.NewRequest(http.MethodPut, req.URL.String()+"&partNumber=2", strings.NewReader("other"))
					if err != nil {
						t.Error(err)
						return
					}
					other.Header = req.Header.Clone()
					if resp, err := plain.RoundTrip(other); err != nil || resp.StatusCode != http.StatusOK {
						t.Errorf("%v, %v", resp, err)
					}
				})
			}
			return plain.RoundTrip(req)
		})}
		res, err := w.uploader(streamParts).File(w.t.Context(), w.file(content), zipped)
		if err != nil || res.Parts.Count != 5 || res.BytesSent != res.Object.Size+multipart.MinPart || strings.Count(w.operations(), "parts-put") != 7 {
			t.Errorf("%+v, %v\n%s", res, err, w.trace())
		}
		w.wantZipped(content)
	})
}

// TestZippedInPartsFreesMemory checks that uploads that fail give their memory back, also that of parts which wait for
// their turn, or whose sizes cannot be saved: another one of the Uploader has the same parts as before. It would have one
// connection if half of the memory was lost.
func TestZippedInPartsFreesMemory(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for _, test := range []struct {
		name string
		with func(*upload.Options)
		full bool // no part can be saved
	}{
		{name: "sent"},
		{name: "waiting", with: func(o *upload.Options) { o.AtRisk = upload.ScaledAtRisk(partedWindow, partedWindow, q) }},
		{name: "not saved", full: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(mib), func(w *world) {
				path := w.file(content)
				var saves atomic.Int64
				with := []func(*upload.Options){streamParts, func(o *upload.Options) {
					o.Memory = 32 * mib
					o.Store = hook(w.store, func(context.Context) error {
						if saves.Add(1) > 1 && test.full {
							return errFull
						}
						return nil
					}, "Save")
				}}
				if test.with != nil {
					with = append(with, test.with)
				}
				up := w.uploader(with...)
				for range 6 {
					saves.Store(0)
					ctx, stop := context.WithTimeout(w.t.Context(), 3*time.Second)
					res, err := up.File(ctx, path, zipped)
					stop()
					if errors.Is(err, errFull) != test.full || !res.Resumable {
						t.Fatalf("%+v, %v\n%s", res, err, w.trace())
					}
					saves.Store(-1e6)
					require.NoError(t, up.Cancel(w.t.Context(), res.ID))
				}
				if res, err := up.File(w.t.Context(), path, zipped); err != nil || res.Parts == nil || res.Parts.Count != 5 {
					t.Errorf("%+v, %v\n%s", res, err, w.trace())
				}
				w.wantZipped(content)
			})
		})
	}
}

// storedParts returns how many bytes the multipart uploads to obj have.
func (w *world) storedParts() (n int64) {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		var list struct {
			Part []struct{ Size int64 }
		}
		w.getXML("/bkt/obj?uploadId="+id, &list)
		for _, part := range list.Part {
			n += part.Size
		}
	}
	return n
}

// interruptZippedParts interrupts a compressed file in parts when the service has two of them.
func (w *world) interruptZippedParts(path string) *upload.Result {
	w.t.Helper()
	done := 0
	res := w.interruptAt(path, zipped, func(e upload.Event) bool {
		if e.Kind == upload.PartDone {
			done++
		}
		return done == 2
	}, streamParts, func(o *upload.Options) { o.Parallel.Connections = 2 })
	w.wantSaved(1)
	return res
}

// TestZippedInPartsResume checks what a resume compares and sends.
func TestZippedInPartsResume(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	edit := func(w *world, path string, content []byte) []byte {
		require.NoError(w.t, editQuietly(path, mib))
		return flipped(content, mib)
	}
	for _, test := range []struct {
		name      string
		change    func(w *world, path string, content []byte) []byte // returns the content that the object must have
		level     int
		with      func(*upload.Options)
		err       error
		discarded string // the cause of the event, if the upload starts over
	}{
		{name: "the same file"},
		{name: "touched", change: func(w *world, path string, content []byte) []byte {
			require.NoError(w.t, os.Chmod(path, 0o400))
			return content
		}},
		{name: "another compressor", level: 1, discarded: "this version of the program compresses the first 6291456 bytes differently"},
		{name: "edited quietly", change: edit, err: session.ErrSourceChanged},
		{name: "edited, and restarted", change: edit, with: func(o *upload.Options) { o.RestartChanged = true }, discarded: "have changed"},
		{name: "restarted", with: func(o *upload.Options) { o.Restart = true }, discarded: "discarded, as requested"},
		{name: "a lost upload", change: func(w *world, path string, content []byte) []byte {
			w.abortAll()
			return content
		}},
		{name: "without parts", with: func(o *upload.Options) { o.Parallel = nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubbleWithMD5(t, slowly, func(w *world) {
				path, want := w.file(content), content
				first := w.interruptZippedParts(path)
				stored := w.storedParts()
				if h, err := w.uploader().Query(w.t.Context(), first.ID); err != nil || h.State != upload.SessionOpen || h.Stored != stored {
					t.Errorf("Query: %+v, %v, want %d", h, err, stored)
				}
				if test.change != nil {
					want = test.change(w, path, content)
				}
				with := test.with
				if with == nil {
					with = func(*upload.Options) {}
				}
				up := w.uploader(streamParts, with)
				upload.SetGzipLevel(up, test.level)
				res, err := up.File(w.t.Context(), path, zipped)
				if test.err != nil {
					if !errors.Is(err, test.err) || !res.Resumable {
						t.Errorf("%+v, %v", res, err)
					}
					if err := up.Cancel(w.t.Context(), first.ID); err != nil {
						t.Error(err)
					}
					w.wantNoObject("obj")
					w.wantNothing()
					return
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				causes := w.causes(upload.Discarded)
				if again := test.discarded != ""; len(causes) != 0 != again || again && !strings.Contains(causes[0], test.discarded) || res.Resumed == again || res.Parts == nil {
					t.Errorf("%+v, discarded %q\n%s", res, causes, w.trace())
				}
				if test.discarded == "" && test.name != "a lost upload" && (res.BytesSent+stored != res.Object.Size || res.BytesReread == 0 || res.ResumedFrom != stored) {
					t.Errorf("%d bytes were stored: %+v", stored, res)
				}
				w.wantZipped(want)
			})
		})
	}
}
