package upload_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// multipartLarge is the size of a file that byMultipart sends in 3 parts.
const multipartLarge = 2*multipart.MinPart + 1

// byMultipart sends a file in parts of 5 MiB of a multipart upload, over 2 connections.
func byMultipart(o *upload.Options) {
	o.Parallel = &upload.Parts{Connections: 2, MinPart: multipart.MinPart, Join: upload.ByMultipart}
}

// wantNoUploads fails if there is a multipart upload.
func (w *world) wantNoUploads() {
	w.t.Helper()
	if n := w.multipartUploads(); n != 0 {
		w.t.Errorf("%d multipart uploads are left", n)
	}
}

// multipartUploads returns the number of multipart uploads.
func (w *world) multipartUploads() int { return len(w.uploadIDs()) }

// pruneRemoved removes what the service refused to abort before. Nothing is left then.
func (w *world) pruneRemoved(up *upload.Uploader) {
	w.t.Helper()
	for p, err := range up.Prune(w.t.Context(), nil) {
		if err != nil || !p.Deleted || !strings.HasPrefix(p.ID, "removed-") {
			w.t.Errorf("%+v, %v", p, err)
		}
	}
	w.wantNothing()
}

// uploadIDs returns the IDs of the multipart uploads.
func (w *world) uploadIDs() (ids []string) {
	w.t.Helper()
	w.srv.ClearFaults()
	var list struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Upload  []struct {
			UploadID string `xml:"UploadId"`
		}
	}
	w.getXML("/bkt?uploads", &list)
	for _, u := range list.Upload {
		ids = append(ids, u.UploadID)
	}
	return ids
}

// wantNoParts fails if a multipart upload to bkt/obj has a part. A process that died
// before it received the ID may leave an upload without parts.
func (w *world) wantNoParts() {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		var list struct {
			XMLName xml.Name `xml:"ListPartsResult"`
			Part    []struct{ PartNumber int }
		}
		w.getXML("/bkt/obj?uploadId="+id, &list)
		if len(list.Part) > 0 {
			w.t.Errorf("a multipart upload with %d parts is left", len(list.Part))
		}
	}
}

func (w *world) getXML(path string, v any) {
	w.t.Helper()
	resp, err := w.http.Get("http://gcs.test" + path)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	require.NoError(w.t, xml.NewDecoder(resp.Body).Decode(v))
}

// A file whose settings a multipart upload does not support is sent in another way, or refused.
func TestMultipartUnsuitable(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	conditional := spec
	conditional.IfGenerationMatch = new(int64)
	held := spec
	held.TemporaryHold = true
	either := func(o *upload.Options) { o.Parallel = &upload.Parts{Connections: 2, MinPart: multipart.MinPart} }
	for _, test := range []struct {
		name  string
		spec  upload.Spec
		with  func(*upload.Options)
		fault bool // the service refuses multipart uploads
		err   error
		parts int64 // composed; 0 means one connection
	}{
		{"a precondition", conditional, byMultipart, false, session.ErrInvalid, 0},
		{"either, with a precondition", conditional, either, false, nil, 3},
		{"a hold", held, byMultipart, false, nil, 0},
		{"either, with a hold", held, either, false, nil, 3},
		{"refused", spec, byMultipart, true, session.ErrPermission, 0},
		{"either, refused", spec, either, true, nil, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if test.fault {
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsStart}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
				}
				res, err := w.uploader(test.with).File(w.t.Context(), w.file(content), test.spec)
				if !errors.Is(err, test.err) {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantSaved(0)
				if test.err != nil {
					w.wantNoObject("obj")
					return
				}
				if res.Object.ComponentCount != test.parts {
					t.Errorf("%d components\n%s", res.Object.ComponentCount, w.trace())
				}
				if warned := w.saw(upload.Warning) > 0; warned != (test.parts == 0) {
					t.Errorf("a warning: %v", warned)
				}
				w.wantObject("obj", content)
			})
		})
	}
}

// interruptAt interrupts an upload of a file at the first event that is one.
func (w *world) interruptAt(path string, s upload.Spec, is func(upload.Event) bool, with ...func(*upload.Options)) *upload.Result {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	res, err := w.uploader(append(with, func(o *upload.Options) {
		o.Observer = func(e upload.Event) {
			if is(e) {
				stop()
			}
		}
	})...).File(ctx, path, s)
	if !errors.Is(err, context.Canceled) || !res.Resumable {
		w.t.Fatalf("%+v, %v", res, err)
	}
	return res
}

// committing reports whether bytes are committed.
func committing(e upload.Event) bool { return e.Committed > 0 }

// interruptMultipart interrupts an upload of path after its first parts, and returns its
// ID.
func (w *world) interruptMultipart(path string) string {
	w.t.Helper()
	res := w.interruptAt(path, spec, committing, byMultipart)
	if n := w.multipartUploads(); n != 1 {
		w.t.Fatalf("%d multipart uploads", n)
	}
	return res.ID
}

// slowly makes a connection take two seconds for a part.
var slowly = &fakegcs.Options{Rate: 5 * mib / 2}

// abortAll aborts the multipart uploads to bkt/obj.
func (w *world) abortAll() {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		req, err := http.NewRequest("DELETE", "http://gcs.test/bkt/obj?uploadId="+id, nil)
		require.NoError(w.t, err)
		resp, err := w.http.Do(req)
		if err != nil || resp.StatusCode != 204 {
			w.t.Fatal(err)
		}
	}
}

// TestQueryComparesParts checks that Query counts a part of which the saved upload does not know that it is stored, if the
// part can be compared with the source.
func TestQueryComparesParts(t *testing.T) {
	t.Parallel()
	inBubbleWithMD5(t, slowly, func(w *world) {
		path := w.file(data(multipartLarge))
		id := w.interruptMultipart(path)
		w.plant(id, id, func(doc *state.Upload) {
			for i := range doc.Parts.List {
				doc.Parts.List[i].ETag = ""
			}
		})
		for _, compared := range []bool{true, false} {
			held, err := w.uploader(byMultipart).Query(w.t.Context(), id)
			if err != nil || held.State != upload.SessionOpen || (held.Stored >= multipart.MinPart) != compared {
				t.Errorf("compared %v: the service has %+v, %v", compared, held, err)
			}
			if compared {
				w.moveFile(path)
			}
		}
	})
}

// countingReaderAt counts the bytes that are read.
type countingReaderAt struct {
	*bytes.Reader
	n atomic.Int64
}

func (r *countingReaderAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	r.n.Add(int64(n))
	return n, err
}

// TestMultipartReadsOnce checks that each byte of the source is read once, whether the parts fit in
// memory or not, unless a part must be sent again. It is hashed while it is sent.
func TestMultipartReadsOnce(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	for _, memory := range []int64{0, mib} {
		for _, reset := range []bool{false, true} {
			inBubble(t, nil, func(w *world) {
				if reset {
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Do: faults.Action{Effect: faults.EffectReset}})
				}
				source := &countingReaderAt{Reader: bytes.NewReader(content)}
				up := w.uploader(byMultipart, func(o *upload.Options) { o.Memory = memory })
				res, err := up.ReaderAt(w.t.Context(), source, multipartLarge, "", spec)
				if err != nil || res.BytesReread != 0 {
					t.Fatalf("%+v, %v\n%s", res, err, w.trace())
				}
				if n := source.n.Load(); n != multipartLarge && !reset {
					t.Errorf("with %d bytes of memory, %d bytes of %d were read", memory, n, multipartLarge)
				}
				w.wantObject("obj", content)
				w.wantNoUploads()
			})
		}
	}
}

// TestMultipartOtherChecksum checks that a server whose replies have the checksum of something else is a failure
// that may pass, and no damage of the file: the outbox then tries the file again.
func TestMultipartOtherChecksum(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	inBubble(t, nil, func(w *world) {
		network := w.http
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodPut || !req.URL.Query().Has("partNumber") {
				return network.Transport.RoundTrip(req)
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_ = req.Body.Close()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Etag": {`"x"`}, "X-Goog-Hash": {"crc32c=AAAAAA=="}}, Body: http.NoBody, Request: req}, nil
		})}
		path := w.file(content)
		little := func(o *upload.Options) { byMultipart(o); o.Memory = q }
		_, err := w.uploader(little).File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrChecksum) {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantSaved(1)
		w.http = network
		w.done(w.uploader(little).File(w.t.Context(), path, spec))
		w.wantObject("obj", content)
		w.wantNoUploads()
	})
}

// After the reply to the completion, the object exists. The call succeeds even if it
// is canceled at that moment, or the service fails afterwards.
func TestMultipartCompleted(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, canceled := range []bool{false, true} {
		t.Run(fmt.Sprint("canceled ", canceled), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				ctx, stop := context.WithCancel(w.t.Context())
				defer stop()
				plain := w.http.Transport
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					resp, err := plain.RoundTrip(req)
					if err == nil && req.Method == "POST" && req.URL.Query().Has("uploadId") {
						body, err := io.ReadAll(resp.Body)
						if err != nil {
							return nil, err
						}
						resp.Body = io.NopCloser(bytes.NewReader(body))
						if canceled {
							stop()
						} else {
							w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
						}
					}
					return resp, err
				})}
				began := time.Now()
				res, err := w.uploader(byMultipart).File(ctx, w.file(content), spec)
				if err != nil || res.Object.Generation == 0 || res.Object.Size != multipartLarge || time.Since(began) > time.Minute {
					t.Errorf("%+v, %v after %v", res, err, time.Since(began))
				}
				w.wantObject("obj", content)
				w.wantSaved(0)
			})
		})
	}
}

// A file that changed is uploaded again. That aborts the upload of the earlier bytes, and no upload of another client.
func TestMultipartSourceChanged(t *testing.T) {
	t.Parallel()
	inBubble(t, slowly, func(w *world) {
		content := data(multipartLarge)
		path := w.file(content)
		w.interruptMultipart(path)
		foreign, err := session.NewClient(w.http, "http://gcs.test")
		require.NoError(t, err)
		if other := multipart.Start(w.t.Context(), foreign, spec); other.URI.IsZero() {
			t.Fatalf("%+v", other)
		}
		// A change is only found in a part that was sent, and any part may be the first.
		inEachPart := []int64{5, multipart.MinPart + 5, 2 * multipart.MinPart}
		for _, offset := range inEachPart {
			require.NoError(t, editQuietly(path, offset))
		}
		w.fails(session.ErrSourceChanged)(w.uploader(byMultipart).File(w.t.Context(), path, spec))
		w.done(w.uploader(byMultipart, func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec))
		w.wantObject("obj", flipped(content, inEachPart...))
		w.wantSaved(0)
		if n := w.multipartUploads(); n != 1 {
			t.Errorf("%d multipart uploads, want only that of the other client", n)
		}
	})
}
