package upload_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// multipartLarge is the size of a file that byMultipart sends in 3 parts.
const multipartLarge = 2*session.MultipartMinPart + 1

// byMultipart sends a file in parts of 5 MiB of a multipart upload, over 2 connections.
func byMultipart(o *upload.Options) {
	o.Parallel = upload.InParts(2, session.MultipartMinPart).By(upload.ByMultipart)
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
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := xml.NewDecoder(resp.Body).Decode(v); err != nil {
		w.t.Fatal(err)
	}
}

// A file is sent by a multipart upload, each byte once, and nothing is left. ByEither does so for a
// file without a precondition.
func TestMultipart(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	for name, with := range map[string]func(*upload.Options){
		"by multipart": byMultipart,
		"by either":    func(o *upload.Options) { o.Parallel = upload.InParts(2, session.MultipartMinPart) },
		"no store":     func(o *upload.Options) { byMultipart(o); o.Store = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				attributes := upload.Spec{
					Bucket: "bkt", Object: "dir/ö bj?", ContentType: "text/x", CacheControl: "no-store", StorageClass: "NEARLINE",
					Metadata: map[string]string{"k": "v"}, CustomTime: time.Unix(1e9, 0), KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
				}
				res, err := w.uploader(with).File(w.t.Context(), w.file(content), attributes)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				o := res.Object
				if res.BytesSent != multipartLarge || res.BytesReread != 0 || o.ContentType != "text/x" || o.CacheControl != "no-store" || o.StorageClass != "NEARLINE" ||
					o.Metadata["k"] != "v" || o.CustomTime.Unix() != 1e9 || o.KMSKeyName == "" || o.MD5 != nil || !o.HasCRC32C {
					t.Errorf("%+v %+v", res, o)
				}
				w.wantObject(attributes.Object, content)
				w.wantSaved(0)
				w.wantNoUploads()
				w.wantNoLeftovers()
			})
		})
	}
}

// A file whose settings a multipart upload does not support is sent in another way, or refused.
func TestMultipartUnsuitable(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	conditional, held := spec, spec
	conditional.IfGenerationMatch, held.TemporaryHold = new(int64), true
	for _, test := range []struct {
		name string
		spec upload.Spec
		err  error
	}{{"a precondition", conditional, session.ErrInvalid}, {"a hold", held, nil}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				res, err := w.uploader(byMultipart).File(w.t.Context(), w.file(content), test.spec)
				if !errors.Is(err, test.err) || err == nil && (res.Parts != nil || w.saw(upload.Warning) != 1) {
					t.Errorf("%+v, %v; %d warnings\n%s", res, err, w.saw(upload.Warning), w.trace())
				}
				w.wantSaved(0)
			})
		})
	}
}

// A multipart upload is interrupted. The next call does not send again the parts that the service
// has, even if the Token does not have them.
func TestMultipartResume(t *testing.T) {
	t.Parallel()
	const size = 4*session.MultipartMinPart + 1
	content := data(size)
	for stopAt := range int64(5) {
		if stopAt%int64(testsize.Full(1, 2)) != 0 || testing.Short() && stopAt != 2 {
			continue
		}
		t.Run(fmt.Sprint(stopAt), func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{Rate: 8 * mib, Latency: 10 * time.Millisecond}, func(w *world) {
				path := w.file(content)
				ctx, stop := context.WithTimeout(w.t.Context(), time.Duration(stopAt)*300*time.Millisecond+20*time.Millisecond)
				defer stop()
				first, err := w.uploader(byMultipart).File(ctx, path, spec)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if !first.Resumable {
					w.wantSaved(0)
					w.wantNoUploads()
					return
				}
				if held, err := w.uploader(byMultipart).Query(w.t.Context(), first.ID); err != nil || held.State != upload.SessionOpen {
					t.Errorf("the service holds %+v, %v", held, err)
				}
				res, err := w.uploader(func(o *upload.Options) { o.Parallel = upload.InParts(1, 0).By(upload.ByCompose) }).File(w.t.Context(), path, spec)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if !res.Resumed || res.ResumedFrom+res.BytesSent != size || stopAt > 2 && res.ResumedFrom == 0 {
					t.Errorf("resumed %v from %d, sent %d of %d\n%s", res.Resumed, res.ResumedFrom, res.BytesSent, size, w.trace())
				}
				w.wantOnlyObject(content)
			})
		})
	}
}

// interruptMultipart interrupts an upload of path after its first parts, and returns its
// ID.
func (w *world) interruptMultipart(path string) string {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	res, err := w.uploader(byMultipart, func(o *upload.Options) {
		o.Observer = func(e upload.Event) {
			if e.Committed > 0 {
				stop()
			}
		}
	}).File(ctx, path, spec)
	if !errors.Is(err, context.Canceled) || !res.Resumable {
		w.t.Fatalf("%+v, %v", res, err)
	}
	if n := w.multipartUploads(); n != 1 {
		w.t.Fatalf("%d multipart uploads", n)
	}
	return res.ID
}

// slowly makes a connection take two seconds for a part.
var slowly = &fakegcs.Options{Rate: 5 * mib / 2}

// A file that changed is uploaded again. That aborts the upload of the earlier bytes, and no upload of another client.
func TestMultipartSourceChanged(t *testing.T) {
	t.Parallel()
	inBubble(t, slowly, func(w *world) {
		content := data(multipartLarge)
		path := w.file(content)
		w.interruptMultipart(path)
		foreign, err := session.NewClient(w.http, "http://gcs.test")
		if err != nil {
			t.Fatal(err)
		}
		if other := foreign.StartMultipart(w.t.Context(), spec); other.URI.IsZero() {
			t.Fatalf("%+v", other)
		}
		// A change is only found in a part that was sent, and any part may be the first.
		inEachPart := []int64{5, session.MultipartMinPart + 5, 2 * session.MultipartMinPart}
		for _, offset := range inEachPart {
			if err := editQuietly(path, offset); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.uploader(byMultipart).File(w.t.Context(), path, spec); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("error = %v", err)
		}
		if _, err := w.uploader(byMultipart, func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec); err != nil {
			t.Error(err)
		}
		w.wantObject("obj", flipped(content, inEachPart...))
		w.wantSaved(0)
		if n := w.multipartUploads(); n != 1 {
			t.Errorf("%d multipart uploads, want only that of the other client", n)
		}
	})
}

// Another client aborts the multipart upload of a saved upload. Query reports that it is gone, and the next call starts another one.
func TestMultipartGone(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	inBubble(t, slowly, func(w *world) {
		path := w.file(content)
		id := w.interruptMultipart(path)
		w.abortAll()
		if held, err := w.uploader(byMultipart).Query(w.t.Context(), id); err != nil || held.State != upload.SessionGone {
			t.Errorf("the service holds %+v, %v", held, err)
		}
		if _, err := w.uploader(byMultipart).File(w.t.Context(), path, spec); err != nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		if w.saw(upload.Restarted) != 1 {
			t.Error("no event reports that the upload was started again")
		}
		w.wantOnlyObject(content)
	})
}

// abortAll aborts the multipart uploads to bkt/obj.
func (w *world) abortAll() {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		req, err := http.NewRequest("DELETE", "http://gcs.test/bkt/obj?uploadId="+id, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		resp, err := w.http.Do(req)
		if err != nil || resp.StatusCode != 204 {
			w.t.Fatal(err)
		}
	}
}

// Without memory for the parts, a part is hashed while it is sent.
func TestMultipartMemory(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	little := func(o *upload.Options) { byMultipart(o); o.Memory = mib }
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Do: faults.Action{Effect: faults.EffectReset}})
		res, err := w.uploader(little).File(w.t.Context(), w.file(content), spec)
		if err != nil || res.BytesReread != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		w.wantObject("obj", content)
		w.wantNoUploads()
	})
	// The source changes between two requests.
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		path := w.file(content)
		var once sync.Once
		_, err := w.uploader(little, func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Waiting {
					once.Do(func() {
						for _, at := range []int64{1, 2 * session.MultipartMinPart} {
							if err := editQuietly(path, at); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
		}).File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantNoObject("obj")
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
// memory or not.
func TestMultipartReadsOnce(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	for _, memory := range []int64{0, mib} {
		inBubble(t, nil, func(w *world) {
			source := &countingReaderAt{Reader: bytes.NewReader(content)}
			up := w.uploader(byMultipart, func(o *upload.Options) { o.Memory = memory })
			if _, err := up.ReaderAt(w.t.Context(), source, multipartLarge, "", spec); err != nil {
				t.Fatalf("%v\n%s", err, w.trace())
			}
			if n := source.n.Load(); n != multipartLarge {
				t.Errorf("with %d bytes of memory, %d bytes of %d were read", memory, n, multipartLarge)
			}
			w.wantObject("obj", content)
		})
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
		if _, err := w.uploader(little).File(w.t.Context(), path, spec); err != nil {
			t.Error(err)
		}
		w.wantObject("obj", content)
		w.wantNoUploads()
	})
}

var errUnsaving = errors.New("the disk is full")

// A process dies at any request. The next one makes the object, sends no finished part again, and
// leaves nothing.
func TestMultipartKilled(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	every := testsize.Full(1, 3)
	if testing.Short() {
		every = 16
	}
	for at := range 9 {
		for i, effect := range []faults.Effect{faults.EffectReset, faults.EffectLoseReply} {
			if (at+i)%every != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", at, effect), func(t *testing.T) {
				t.Parallel()
				inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
					w.addFaults(faults.Fault{Skip: at, Do: faults.Action{Effect: effect}})
					path := w.file(content)
					p := &process{Store: w.store}
					ctx, die := context.WithCancel(w.t.Context())
					defer die()
					first, err := w.uploader(byMultipart, func(o *upload.Options) {
						o.Store = p
						o.Observer = func(e upload.Event) {
							if e.Kind == upload.Waiting {
								p.dead.Store(true)
								die()
							}
						}
					}).File(ctx, path, spec)
					synctest.Wait() // a part of the killed process may still arrive
					stored := int64(0)
					if err == nil {
						w.wantObject("obj", content) // net/http repeats a GET
					} else if held, err := w.uploader(byMultipart).Query(w.t.Context(), first.ID); err == nil {
						if stored = held.Stored; held.State == upload.SessionFinished {
							stored = multipartLarge
						}
					}
					res, err := w.uploader(byMultipart).File(w.t.Context(), path, spec)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					if res.Resumed && (res.ResumedFrom != stored || res.BytesSent > multipartLarge-stored+1) {
						t.Errorf("resumed from %d, sent %d bytes, the service had %d\n%s", res.ResumedFrom, res.BytesSent, stored, w.trace())
					}
					w.wantObject("obj", content)
					w.wantSaved(0)
					if at > 1 { // a start whose reply was lost leaves an upload without parts
						w.wantNoUploads()
					}
				})
			})
		}
	}
}

// TestMultipartToPeerThatClosesIdleConnections checks that parts get through a peer that
// closes each connection a few milliseconds after its reply. Every part went out on the
// connection over which the parts were listed, and the retries were used up.
func TestMultipartToPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, after := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		inBubble(t, &fakegcs.Options{Rate: 20 * mib, Latency: 3 * time.Millisecond}, func(w *world) {
			w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
			if _, err := w.uploader(byMultipart).File(w.t.Context(), w.file(content), spec); err != nil {
				t.Fatalf("%v: %v\n%s", after, err, w.trace())
			}
			w.wantOnlyObject(content)
			for _, e := range w.events {
				if e.Kind == upload.Waiting && e.Part > 0 {
					t.Errorf("%v: part %d waited: %s", after, e.Part, e.Cause)
				}
			}
		})
	}
}

// An upload whose lease is lost is not aborted, because another process continues it.
func TestMultipartLeaseLost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, op := range []string{"PUT", "GET", "POST"} { // a part, the list, the completion
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				f, path, plain := newFleeting(w.store), w.file(content), w.http
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					if req.Method == op && req.URL.Query().Has("uploadId") {
						f.lose(errTaken)
					}
					return plain.Transport.RoundTrip(req)
				})}
				_, err := w.uploader(byMultipart, func(o *upload.Options) { o.Store = f }).File(w.t.Context(), path, spec)
				w.http = plain
				if !errors.Is(err, state.ErrInUse) && op != "POST" {
					t.Errorf("error = %v", err)
				}
				for _, r := range w.srv.Requests() {
					if r.Op == faults.OpPartsAbort {
						t.Error("the upload was aborted")
					}
				}
				w.wantSaved(1)
				if _, err := w.uploader(byMultipart).File(w.t.Context(), path, spec); err != nil {
					t.Fatal(err)
				}
				w.wantOnlyObject(content)
			})
		})
	}
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
