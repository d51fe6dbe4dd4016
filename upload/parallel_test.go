package upload_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// composed sends files in parts by compose.
func composed(connections int, minPart int64) *upload.Parts {
	return &upload.Parts{Connections: connections, MinPart: minPart, Join: upload.ByCompose}
}

// byParts sends a file in parts of 512 KiB over 4 connections.
func byParts(o *upload.Options) { o.Parallel, o.ChunkSize = composed(4, 2*q), 2*q }

// partsLarge is the size of a file that byParts sends in 6 parts.
const partsLarge = 11*q + 1

// temporaryObjects returns the names of the temporary objects.
func (w *world) temporaryObjects() (names []string) {
	w.t.Helper()
	w.srv.ClearFaults()
	client, err := session.NewClient(w.http, "http://gcs.test")
	require.NoError(w.t, err)
	page, r := bucket.List(w.t.Context(), client, bucket.Query{Bucket: "bkt", Prefix: "gcsup-parts/"})
	if page == nil {
		w.t.Fatal(r.Status, r.Err)
	}
	for _, o := range page.Objects {
		names = append(names, o.Name)
	}
	return names
}

// wantNoLeftovers fails if there are temporary objects.
func (w *world) wantNoLeftovers() {
	w.t.Helper()
	for _, name := range w.temporaryObjects() {
		w.t.Errorf("%s is left", name)
	}
}

// wantOnlyObject checks the object, and that nothing else is left, see wantNothing.
func (w *world) wantOnlyObject(content []byte) {
	w.t.Helper()
	w.wantObject("obj", content)
	w.wantNothing()
}

// TestParts sends a file in parts, each byte once, and nothing is left. The object has the attributes.
func TestParts(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		size, components int64
		with             func(*upload.Options)
	}{
		"compose":             {partsLarge, 6, byParts},
		"multipart":           {multipartLarge, 0, byMultipart},
		"either":              {multipartLarge, 0, func(o *upload.Options) { o.Parallel = &upload.Parts{Connections: 2, MinPart: multipart.MinPart} }}, // without a precondition
		"multipart, no store": {multipartLarge, 0, func(o *upload.Options) { byMultipart(o); o.Store = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				content := data(way.size)
				attributes := upload.Spec{
					Bucket: "bkt", Object: "dir/ö bj?", ContentType: "text/x", CacheControl: "no-store", StorageClass: "NEARLINE",
					Metadata: map[string]string{"k": "v"}, CustomTime: time.Unix(1e9, 0), KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
				}
				res, err := w.uploader(way.with).File(w.t.Context(), w.file(content), attributes)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				o := res.Object
				if res.BytesSent != way.size || res.BytesReread != 0 || o.ComponentCount != way.components || o.ContentType != "text/x" || o.CacheControl != "no-store" ||
					o.StorageClass != "NEARLINE" || o.Metadata["k"] != "v" || o.CustomTime.Unix() != 1e9 || o.KMSKeyName == "" || o.MD5 != nil || !o.HasCRC32C {
					t.Errorf("%+v %+v", res, o)
				}
				w.wantObject(attributes.Object, content)
				w.wantNothing()
			})
		})
	}
}

// Events have the offsets of the new upload after the saved one was discarded.
func TestParallelRestartEvents(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
		path := w.file(data(partsLarge))
		w.interruptParts(path)
		up := w.uploader(func(o *upload.Options) { o.Parallel, o.ChunkSize, o.Restart = nil, 2*q, true })
		w.done(up.File(w.t.Context(), path, spec))
		w.mu.Lock()
		defer w.mu.Unlock()
		if last := w.events[len(w.events)-1]; last.Committed != partsLarge {
			t.Errorf("the last event has %d bytes committed of %d", last.Committed, last.Size)
		}
	})
}

// An upload in parts that was started at another endpoint is neither canceled nor deleted, even if
// all its parts are finished.
func TestParallelOtherEndpoint(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpCompose}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
		path := w.file(data(partsLarge))
		res, err := w.uploader(byParts).File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrPermission) || !res.Resumable {
			t.Fatalf("%+v, %v", res, err)
		}
		other := func(o *upload.Options) { o.Endpoint = "http://other.test" }
		w.wantError(w.uploader(byParts, other).Cancel(w.t.Context(), res.ID), session.ErrURIMismatch)
		w.wantSaved(1)
		w.fails(session.ErrURIMismatch)(w.uploader(byParts, other).Query(w.t.Context(), res.ID))
		if n := len(w.temporaryObjects()); n != 6 { // the faults are cleared
			t.Errorf("%d temporary objects", n)
		}
		if err := w.uploader(byParts).Cancel(w.t.Context(), res.ID); err != nil {
			t.Error(err)
		}
		w.wantNothing()
	})
}

// The Result includes the retries and waits of the parts.
func TestParallelRetries(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		res, err := w.uploader(byParts).File(w.t.Context(), w.file(data(partsLarge)), spec)
		if err != nil || res.Retries != 1 || res.Waited == 0 {
			t.Errorf("%d retries, waited %v, %v", res.Retries, res.Waited, err)
		}
	})
}

// Without a store, an interrupted upload cannot be resumed. If the service also fails to delete the
// temporary objects, a warning names them.
func TestParallelLeftWithoutStore(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
		ctx, stop := context.WithCancel(w.t.Context())
		defer stop()
		w.addFaults(refusing(faults.OpDelete, 503))
		_, err := w.uploader(byParts, withoutStore, func(o *upload.Options) {
			observe := o.Observer
			o.Observer = func(e upload.Event) {
				observe(e)
				if e.Committed >= 5*q {
					stop()
				}
			}
		}).File(ctx, w.file(data(partsLarge)), spec)
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if len(w.temporaryObjects()) == 0 {
			t.Fatal("nothing is left")
		}
		if w.saw(upload.Warning) != 1 {
			t.Errorf("no warning names what is left")
		}
	})
}

// The error of an upload that is interrupted before the compose reports all bytes as committed.
func TestParallelInterruptedBeforeCompose(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		ctx, stop := context.WithCancel(w.t.Context())
		defer stop()
		_, err := withCall(w.uploader(byParts), upload.CallOptions{Confirm: func(context.Context) error {
			stop()
			return nil
		}}).File(ctx, w.file(data(partsLarge)), spec)
		if e, ok := errors.AsType[*upload.InterruptedError](err); !ok || e.Committed != partsLarge || !e.Resumable {
			t.Errorf("%+v", err)
		}
		w.wantNoObject("obj")
	})
}

// A process dies after the compose, before it saves that. File and Prune recognize the object, and delete the
// temporary objects unless the compose did. If only they were left, a file that was edited since is sent again.
func TestParallelKilledAfterCompose(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]struct{ prune, softDelete, edited bool }{
		"File": {}, "File, not killed, edited": {edited: true}, "Prune": {prune: true}, "Prune, soft delete": {prune: true, softDelete: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := data(partsLarge)
			inBubble(t, nil, func(w *world) {
				next, dead := w.http.Transport, errors.New("dead")
				ctx, die := context.WithCancelCause(w.t.Context())
				defer die(nil)
				p := &process{Store: w.store}
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					if then.softDelete && strings.HasSuffix(req.URL.Path, "/b/bkt") {
						return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(strings.NewReader(`{"name":"bkt","softDeletePolicy":{"retentionDurationSeconds":"604800"}}`))}, nil
					}
					resp, err := next.RoundTrip(req)
					if strings.HasSuffix(req.URL.Path, "/compose") && !then.edited {
						p.dead.Store(true)
						die(dead)
						return nil, dead
					}
					return resp, err
				})}
				if then.edited {
					w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpDelete}, Skip: 2, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
				}
				path := w.file(content)
				if _, err := w.uploader(byParts, func(o *upload.Options) { o.Store = p }).File(ctx, path, spec); errors.Is(err, context.Canceled) == then.edited {
					t.Fatal(err)
				}
				w.http = &http.Client{Transport: next}
				w.srv.ClearFaults()
				w.wantSaved(1)
				if then.prune {
					n := 0
					for pruned, err := range w.uploader(byParts).Prune(w.t.Context(), nil) {
						if n++; err != nil || !pruned.Deleted || pruned.State != upload.SessionFinished || pruned.Object == nil {
							t.Errorf("%+v, %v", pruned, err)
						}
					}
					if n != 1 {
						t.Errorf("%d uploads", n)
					}
				} else {
					want := int64(0)
					if then.edited {
						content, want = flipped(content, 5), int64(partsLarge)
						path = w.file(content)
					}
					res, err := w.uploader(byParts).File(w.t.Context(), path, spec)
					if err != nil || res.BytesSent != want || res.Object == nil || res.Resumed == then.edited {
						t.Errorf("%+v, %v", res, err)
					}
				}
				w.wantOnlyObject(content)
			})
		})
	}
}

// A bucket with versioning keeps no noncurrent versions of temporary objects.
func TestParallelVersioning(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	inBubble(t, nil, func(w *world) {
		w.patchBucket(`{"versioning":{"enabled":true}}`)
		w.done(w.uploader(byParts).File(w.t.Context(), w.file(content), spec))
		w.wantObject("obj", content)
		if list := w.request("GET", "/storage/v1/b/bkt/o?versions=true&prefix=gcsup-parts/", ""); strings.Contains(list, `"items"`) {
			t.Errorf("versions are left: %s", list)
		}
	})
}

// patchBucket changes the configuration of the bucket.
func (w *world) patchBucket(body string) { w.t.Helper(); w.request("PATCH", "/storage/v1/b/bkt", body) }

// request makes a request and returns the body of its reply.
func (w *world) request(method, path, body string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://gcs.test"+path, strings.NewReader(body))
	require.NoError(w.t, err)
	resp, err := w.http.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatal(resp.StatusCode, string(text), err)
	}
	return string(text)
}

// TestJoinMayTakeMinutes checks that a request that makes the object from its parts is not canceled
// while the service is silent for minutes, and that it is in the end.
func TestJoinMayTakeMinutes(t *testing.T) {
	t.Parallel()
	for op, by := range map[faults.Op]func(*upload.Options){faults.OpPartsComplete: byMultipart, faults.OpCompose: byParts} {
		for after, retries := range map[time.Duration]int64{9 * time.Minute: 0, 11 * time.Minute: 1} {
			inBubble(t, &fakegcs.Options{Faults: []faults.Fault{
				{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStallReply, For: after}},
			}}, func(w *world) {
				content := data(3*multipart.MinPart + 1)
				res, err := w.uploader(by).File(w.t.Context(), w.file(content), spec)
				if err != nil || min(int64(res.Retries), 1) != retries {
					t.Errorf("%s, silent for %s: %+v, %v", op, after, res, err)
				}
				w.wantObject("obj", content)
			})
		}
	}
}

// If the service fails when the object is complete, the call waits once for all its temporary objects.
func TestParallelOutageInDeletes(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(40 * q)
		w.addFaults(refusing(faults.OpDelete, 503))
		began := time.Now()
		_, err := w.uploader(byParts, func(o *upload.Options) { o.RetryFor = 10 * time.Minute }).File(w.t.Context(), w.file(content), spec)
		if took := time.Since(began); err != nil || took < 9*time.Minute || took > 12*time.Minute {
			t.Errorf("%v after %v", err, took)
		}
		if w.saw(upload.Warning) != 1 {
			t.Errorf("no warning names what is left")
		}
		w.wantSaved(1) // the next call deletes it
	})
}
