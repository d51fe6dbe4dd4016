package upload_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/grace"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// partedWindow is the first window of the streams that streamParts sends: a shorter stream gets a session.
const partedWindow = 6 * mib

// streamParts sends a stream in parts of 5 MiB over 4 connections.
func streamParts(o *upload.Options) {
	o.Window, o.Parallel = int(partedWindow), &upload.Parts{Connections: 4, MinPart: multipart.MinPart}
}

// partedLarge is the size of a stream that streamParts sends in 4 parts: the first window, and 3 of the rest.
const partedLarge = partedWindow + 2*multipart.MinPart + 1

// aboutBucket are the requests about a bucket, which are made once.
const aboutBucket = "bucket-get bucket-permissions notification-list "

// direct makes the parts those of a multipart upload to the object.
func direct(o *upload.Options) { o.Parallel = o.Parallel.Joined(upload.ByMultipart) }

// beyond makes streams need several multipart uploads.
func beyond(o *upload.Options) { o.Parallel = o.Parallel.AtMost(2) }

// operations returns the kinds of the requests.
func (w *world) operations() string {
	var ops []string
	for _, r := range w.srv.Requests() {
		ops = append(ops, string(r.Op))
	}
	return strings.Join(ops, " ")
}

// TestStreamInParts sends streams in parts, each byte once, and nothing is left. A stream that ends within its first
// window has the same requests as over one connection.
func TestStreamInParts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, size := range []int64{0, q, q + 1, partedWindow, partedWindow + 1, partedWindow + multipart.MinPart, partedWindow + multipart.MinPart + 1, partedLarge} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			content, long := data(size), size > partedWindow
			var short string
			inBubble(t, nil, func(w *world) {
				if _, err := w.uploader(streamParts, func(o *upload.Options) { o.Parallel = nil }).Reader(w.t.Context(), pieces(content), spec); err != nil {
					t.Fatal(err)
				}
				short = w.trace()
			})
			inBubble(t, nil, func(w *world) {
				up := w.uploader(streamParts)
				if size == partedLarge {
					up = w.uploader(streamParts, direct)
				}
				res, err := up.Reader(w.t.Context(), pieces(content), spec)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if got := w.trace(); !long && got != short {
					t.Errorf("requests\n%swant\n%s", got, short)
				}
				parts := 1 + int((size-partedWindow+multipart.MinPart-1)/multipart.MinPart)
				want := "parts-start" + strings.Repeat(" parts-put", parts) + " parts-list parts-complete "
				if size == partedLarge {
					want = "bucket-permissions " + want + "get"
				} else {
					want = aboutBucket + want + "compose delete"
				}
				if want = "get " + want; long && w.operations() != want {
					t.Errorf("requests %s, want %s", w.operations(), want)
				}
				if res.BytesSent != size || res.Size != size || res.Object.CRC32C != checksum.Update(0, content) || res.ID != "" || (res.Parts != nil) != long {
					t.Errorf("Result = %+v", res)
				}
				if long && (res.Parts.Count != parts || res.Object.MD5 != nil) {
					t.Errorf("%+v", res.Parts)
				}
				if warned := size == partedLarge; w.saw(upload.Warning) != 0 != warned || (w.saw(upload.PartDone) != parts) == long {
					t.Errorf("%d warnings, %d parts", w.saw(upload.Warning), w.saw(upload.PartDone))
				}
				w.wantOnlyObject(content)
			})
		})
	}
}

// TestStreamInPartsRates checks that parts are sent at a time, while others are read, and that a slow source does not
// wait for its first window.
func TestStreamInPartsRates(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(80 * mib)
	took := func(with ...func(*upload.Options)) (took time.Duration) {
		inBubble(t, distant(mib), func(w *world) {
			began := time.Now()
			if _, err := w.uploader(with...).Reader(w.t.Context(), bytes.NewReader(content), spec); err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
			w.wantOnlyObject(content)
		})
		return took
	}
	one := took()
	eight := took(func(o *upload.Options) { o.Parallel = &upload.Parts{Connections: 8} })
	if eight*5 > one {
		t.Errorf("%v with eight connections, %v with one", eight, one)
	}
	inBubble(t, nil, func(w *world) {
		slow, in := io.Pipe()
		go func() {
			for range 40 {
				_, _ = in.Write(data(q))
				time.Sleep(time.Second)
			}
			_ = in.Close()
		}()
		began, started := time.Now(), time.Duration(0)
		up := w.uploader(streamParts, func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Started {
					started = time.Since(began)
				}
			}
		})
		if res, err := up.Reader(w.t.Context(), slow, spec); err != nil || res.Parts != nil || started > 12*time.Second {
			t.Errorf("started after %v, %v", started, err)
		}
	})
}

// multipartPoints are the requests of a stream in one multipart upload, with the faults of each.
var multipartPoints = []point{
	{"look", faults.Match{Op: faults.OpGet}, nil},
	{"start", faults.Match{Op: faults.OpPartsStart}, nil},
	{"part", faults.Match{Op: faults.OpPartsPut}, slices.Concat(dataFaults[:4], []fault{
		{"damaged", faults.Fault{Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}},
		{"404", faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 404}}},
	})},
	{"list", faults.Match{Op: faults.OpPartsList}, nil},
	{"complete", faults.Match{Op: faults.OpPartsComplete}, objectFaults},
}

// TestStreamInPartsSurvives checks that a stream in parts is uploaded despite each fault of each of its requests.
func TestStreamInPartsSurvives(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	eachFault(t, 3, append(slices.Clone(multipartPoints),
		point{"bucket", faults.Match{Op: faults.OpBucketGet}, nil},
		point{"compose", faults.Match{Op: faults.OpCompose}, objectFaults},
		point{"delete", faults.Match{Op: faults.OpDelete}, nil},
	), func(w *world, at string, do faults.Action) {
		res, err := w.uploader(streamParts, beyond).Reader(w.t.Context(), pieces(content), spec)
		if err != nil || res.Parts == nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantFaults()
		w.wantObject("obj", content)
		w.wantSaved(0)
		if at != "start" { // a reply that is lost has the only ID
			w.wantNoUploads()
		}
	})
}

// TestStreamInPartsFails checks that an upload that fails leaves no object and no parts, whatever the reason is.
func TestStreamInPartsFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content, broken := data(partedLarge), errors.New("broken")
	refuse := func(op faults.Op, status int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
	}
	size := int64(partedLarge - 1)
	crc32c := uint32(1)
	for _, test := range []struct {
		name  string
		at    int64 // where the reader fails; 0 if it does not
		spec  func(*upload.Spec)
		call  upload.CallOptions
		fault faults.Fault
		err   error
	}{
		{name: "the reader at once", at: q + 1, err: broken},
		{name: "the reader after the first window", at: partedWindow + 1, err: broken},
		{name: "the reader after a part", at: partedWindow + multipart.MinPart, err: broken},
		{name: "the confirmation", call: upload.CallOptions{Confirm: func(context.Context) error { return broken }}, err: broken},
		{name: "the size", call: upload.CallOptions{Size: &size}, err: session.ErrInvalid},
		{name: "a size of more", call: upload.CallOptions{Size: new(int64(partedLarge + 1))}, err: upload.ErrTruncated},
		{name: "the checksum", spec: func(s *upload.Spec) { s.CRC32C = &crc32c }, err: session.ErrChecksum},
		{name: "a part", fault: refuse(faults.OpPartsPut, 403), err: session.ErrPermission},
		{name: "a part in an outage", fault: refuse(faults.OpPartsPut, 503), err: session.ErrRetriesExhausted},
		{name: "a damaged part", fault: faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: -1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}, err: session.ErrChecksum},
		{name: "the completion", fault: refuse(faults.OpPartsComplete, 403), err: session.ErrPermission},
		{name: "the compose", fault: refuse(faults.OpCompose, 403), err: session.ErrPermission},
		{name: "the precondition", spec: func(s *upload.Spec) { s.IfGenerationMatch = new(int64) }, fault: refuse(faults.OpCompose, 412), err: session.ErrProtocol},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if test.fault.Times != 0 {
					w.addFaults(test.fault)
				}
				spec := spec
				if test.spec != nil {
					test.spec(&spec)
				}
				var r io.Reader = pieces(content)
				if test.at > 0 {
					r = io.MultiReader(bytes.NewReader(content[:test.at]), iotest.ErrReader(broken))
				}
				with := []func(*upload.Options){streamParts}
				if len(test.name)%2 == 0 {
					with = append(with, beyond)
				}
				res, err := withCall(w.uploader(with...), test.call).Reader(w.t.Context(), r, spec)
				if !errors.Is(err, test.err) || res.Object != nil || res.Resumable || res.Leftover != nil {
					t.Errorf("%v, %+v", err, res)
				}
				if test.at > 0 && !errors.Is(err, chunk.ErrRead) {
					t.Error(err)
				}
				w.wantNoObject("obj")
				w.wantSaved(0)
				w.wantNoUploads()
				w.wantNoLeftovers()
			})
		})
	}
}

// TestStreamBeyond sends streams of more than one multipart upload, with and without a precondition, and in a bucket
// that does not allow temporary objects.
func TestStreamBeyond(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedWindow + 3*multipart.MinPart + 1) // in five parts
	inBubble(t, nil, func(w *world) {
		up := w.uploader(streamParts, beyond)
		if res, err := up.Reader(w.t.Context(), pieces(content), spec); err != nil || res.Parts.Count != 5 || res.Object.CRC32C != checksum.Update(0, content) {
			t.Fatalf("%v, %+v\n%s", err, res, w.trace())
		}
		got := w.operations()
		w.wantOnlyObject(content)
		part := "parts-start parts-put parts-put parts-list parts-complete "
		if want := "get " + aboutBucket + part + part + "parts-start parts-put parts-list parts-complete compose delete delete delete"; got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
		never := spec
		never.IfGenerationMatch, never.Object = new(int64), "other"
		if _, err := up.Reader(w.t.Context(), pieces(content), never); err != nil {
			t.Error(err)
		}
		w.wantObject("other", content)
		never.Object = "later"
		r := io.MultiReader(bytes.NewReader(content), atEnd(func() {
			if _, err := up.Bytes(w.t.Context(), []byte("x"), never); err != nil {
				t.Error(err)
			}
		}))
		if _, err := up.Reader(w.t.Context(), r, never); !errors.Is(err, session.ErrPrecondition) {
			t.Errorf("another client wrote the object: %v", err)
		}
		w.wantObject("later", []byte("x"))
		w.wantSaved(0)
		w.wantNoLeftovers()
		w.wantNoUploads()
	})
	inBubble(t, nil, func(w *world) {
		if err := w.srv.CreateBucket(fakegcs.Bucket{Name: "kept", Retention: time.Minute}); err != nil {
			t.Fatal(err)
		}
		kept := upload.Spec{Bucket: "kept", Object: "obj"}
		var why []string
		up := w.uploader(streamParts, beyond, func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Warning {
					why = append(why, e.Cause)
				}
			}
		})
		if _, err := up.Reader(w.t.Context(), pieces(content[:partedWindow+1]), kept); err != nil {
			t.Error(err)
		}
		if want := fmt.Sprintf("more than %d bytes", 2*multipart.MinPart); len(why) != 1 || !strings.Contains(why[0], want) || !strings.Contains(why[0], "retention policy") {
			t.Errorf("warnings %q", why)
		}
		if _, err := up.Reader(w.t.Context(), pieces(content), upload.Spec{Bucket: "kept", Object: "long"}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("a stream of more parts: %v", err)
		}
		w.wantSaved(0)
	})
}

// TestStreamFailureOffset checks that the error of a request has the offset in the stream, even if it concerns another
// multipart upload than the first.
func TestStreamFailureOffset(t *testing.T) {
	t.Parallel()
	const first = partedWindow + multipart.MinPart // the bytes of the first multipart upload
	content := data(first + 1)
	for op, want := range map[faults.Op]int64{faults.OpPartsPut: first, faults.OpPartsComplete: first + 1} {
		t.Run(string(op), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				refusal := faults.Fault{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}}
				if refusal.Skip = 1; op == faults.OpPartsPut {
					refusal.Skip = 2
				}
				w.addFaults(refusal)
				_, err := w.uploader(streamParts, beyond).Reader(w.t.Context(), pieces(content), spec)
				if failed, ok := errors.AsType[*session.Error](err); !ok || failed.Offset != want {
					t.Errorf("%v: %+v, want offset %d", err, failed, want)
				}
			})
		})
	}
}

// atEnd is a reader that calls a function at its end.
type atEnd func()

func (w atEnd) Read([]byte) (int, error) {
	w()
	return 0, io.EOF
}

// TestStreamInPartsCanceled checks that an interrupted upload, and a Writer that is aborted, leave nothing.
func TestStreamInPartsCanceled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, slowly, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(2200*time.Millisecond, cancel)
		res, err := w.uploader(streamParts).Reader(ctx, pieces(data(partedLarge)), spec)
		interrupted, ok := errors.AsType[*upload.InterruptedError](err)
		if !ok || interrupted.Resumable || interrupted.Committed < multipart.MinPart || res.Resumable {
			t.Errorf("%v, %+v", err, res)
		}
		w.wantNoObject("obj")
		w.wantSaved(0)
		w.wantNoUploads()
	})
	inBubble(t, slowly, func(w *world) {
		wr := w.uploader(streamParts).NewWriter(w.t.Context(), spec)
		if _, err := wr.Write(data(partedLarge)); err != nil {
			t.Fatal(err)
		}
		if w.multipartUploads() != 1 {
			t.Error("the Writer does not send parts")
		}
		wr.Abort()
		w.wantNoObject("obj")
		w.wantSaved(0)
		w.wantNoUploads()
		wr = w.uploader(streamParts).NewWriter(w.t.Context(), spec)
		if _, err := io.Copy(wr, pieces(data(partedLarge))); err != nil {
			t.Fatal(err)
		}
		if err := wr.Close(); err != nil || wr.Result().Parts == nil {
			t.Error(err)
		}
		w.wantOnlyObject(data(partedLarge))
	})
}

// killStream kills a process that sends a stream in parts, after n of them are stored.
func (w *world) killStream(spec upload.Spec, n int, with ...func(*upload.Options)) {
	w.t.Helper()
	ctx, die := context.WithCancel(w.t.Context())
	p, plain := &process{Store: w.store}, w.http
	w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errDead
		}
		return plain.Transport.RoundTrip(req)
	})}
	var stored atomic.Int64
	up := w.uploader(append([]func(*upload.Options){streamParts, func(o *upload.Options) {
		o.Store = p
		o.Observer = func(e upload.Event) {
			if e.Kind == upload.PartDone && stored.Add(1) == int64(n) {
				p.dead.Store(true)
				die()
			}
		}
	}}, with...)...)
	if _, err := up.Reader(ctx, pieces(data(partedLarge)), spec); err == nil {
		w.t.Fatal("the process was not killed")
	}
	w.http = plain
}

// TestStreamInPartsKilled checks that what a killed process left is removed by the next stream to any object, by
// Prune, by Cancel, and by Resume, and that another stream that runs keeps its parts.
func TestStreamInPartsKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, remove := range map[string]func(w *world, up *upload.Uploader, id string) error{
		"next": func(w *world, up *upload.Uploader, _ string) error {
			other := spec
			other.Object = "other"
			_, err := up.Reader(w.t.Context(), pieces(data(partedLarge)), other)
			return err
		},
		"prune": func(w *world, up *upload.Uploader, _ string) error {
			for p, err := range up.Prune(w.t.Context(), nil) {
				if err != nil || !p.Deleted || p.State != upload.SessionOpen || p.Stored < multipart.MinPart {
					return fmt.Errorf("%+v, %w", p, err)
				}
			}
			return nil
		},
		"cancel": func(w *world, up *upload.Uploader, id string) error { return up.Cancel(w.t.Context(), id) },
		"resume": func(w *world, up *upload.Uploader, id string) error {
			if _, err := up.Resume(w.t.Context(), id); !errors.Is(err, state.ErrNotFound) {
				return fmt.Errorf("resume: %w", err)
			}
			return nil
		},
	} {
		for _, way := range []struct {
			name    string
			parts   int // that are stored before the kill
			objects int // temporary ones
			with    func(*upload.Options)
		}{{"one upload", 1, 0, direct}, {"composed", 1, 0, func(*upload.Options) {}}, {"beyond", 3, 1, beyond}} {
			t.Run(name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2}, func(w *world) {
					w.killStream(spec, way.parts, way.with)
					var left upload.SavedUpload
					for s, err := range w.uploader().Saved(w.t.Context()) {
						if left = s; err != nil {
							t.Fatal(err)
						}
					}
					if !left.ToRemove || left.Source() != "-" || left.Size != -1 || left.InUse || !left.Expires.IsZero() {
						t.Errorf("%+v", left)
					}
					if uploads, objects := w.multipartUploads(), len(w.temporaryObjects()); uploads != 1 || objects != way.objects {
						t.Errorf("%d multipart uploads and %d temporary objects are left", uploads, objects)
					}
					if err := remove(w, w.uploader(streamParts), left.ID); err != nil {
						t.Error(err)
					}
					w.wantNoObject("obj")
					w.wantSaved(0)
					w.wantNoUploads()
					w.wantNoLeftovers()
				})
			})
		}
	}
}

// hungList is a store whose list ignores its context, and hangs until hold is closed.
type hungList struct {
	state.Store
	hold chan struct{}
}

func (h hungList) List(ctx context.Context) ([]string, error) {
	<-h.hold
	return h.Store.List(ctx)
}

// TestStreamStoreThatHangs checks that a store that ignores its context delays the end of a stream only for a while.
func TestStreamStoreThatHangs(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		hold := make(chan struct{})
		up := w.uploader(streamParts, func(o *upload.Options) {
			o.Store = hungList{w.store, hold}
		})
		began := time.Now()
		if _, err := up.Reader(w.t.Context(), pieces(data(partedLarge)), spec); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > grace.Requests+grace.Store+time.Second {
			t.Errorf("the stream ended after %v", took)
		}
		close(hold)
	})
}

// TestStreamInPartsStopped checks that a stream cannot be paused, or get another source, and goes on, and that Cancel
// ends it and removes what it stored.
func TestStreamInPartsStopped(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, slowly, func(w *world) {
		stored := make(chan struct{})
		var once sync.Once
		up := w.uploader(streamParts, func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.PartDone {
					once.Do(func() { close(stored) })
				}
			}
		})
		ended := make(chan called, 1)
		go func() {
			res, err := up.Reader(w.t.Context(), pieces(data(partedLarge)), spec)
			ended <- called{res, err}
		}()
		<-stored
		ids, err := w.store.List(w.t.Context())
		if err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
		if err := up.Pause(w.t.Context(), ids[0]); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Pause: %v", err)
		}
		if _, err := up.TakeOver(w.t.Context(), ids[0], w.file(data(q))); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("TakeOver: %v", err)
		}
		doc, err := w.store.Load(w.t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := up.Import(w.t.Context(), doc, w.file(nil)); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Import: %v", err)
		}
		if w.multipartUploads() != 1 || len(ended) > 0 {
			t.Error("the stream was stopped")
		}
		if err := up.Cancel(w.t.Context(), ids[0]); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		if got := <-ended; !errors.Is(got.err, session.ErrCanceled) || got.res.Resumable {
			t.Errorf("%+v", got)
		}
		w.wantNoObject("obj")
		w.wantSaved(0)
		w.wantNoUploads()
	})
}

// TestStreamInPartsLeftovers checks that a stream does not wait for the removal of what earlier ones left, and that one
// that the service refuses is reported once.
func TestStreamInPartsLeftovers(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2}, func(w *world) {
		w.killStream(spec, 1)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsAbort}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
		for range 2 {
			if _, err := w.uploader(streamParts).Reader(w.t.Context(), pieces(content), spec); err != nil {
				t.Fatal(err)
			}
			if n := w.saw(upload.Warning); n != 1 {
				t.Errorf("%d warnings", n)
			}
			w.wantSaved(1)
		}
		w.srv.ClearFaults()
		w.pruneRemoved(w.uploader())
	})
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2}, func(w *world) {
		w.killStream(spec, 1)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsAbort}, Do: faults.Action{Effect: faults.EffectDelay, For: time.Minute}})
		began := time.Now()
		if _, err := w.uploader(streamParts).Reader(w.t.Context(), pieces(content), spec); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the stream took %v", took)
		}
		if w.saw(upload.Warning) != 0 {
			t.Error("a warning, although the next stream tries again")
		}
		w.wantSaved(1)
		if _, err := w.uploader(streamParts).Reader(w.t.Context(), pieces(content), spec); err != nil {
			t.Fatal(err)
		}
		w.wantSaved(0)
		w.wantNoUploads()
	})
}

// TestStreamsInPartsAtOnce checks that streams to one object and to others run at a time, and that none removes the
// parts of another one.
func TestStreamsInPartsAtOnce(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib}, func(w *world) {
		up := w.uploader(streamParts)
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				to := spec
				to.Object = fmt.Sprint("obj", i/2)
				time.Sleep(time.Duration(i) * time.Second)
				if _, err := up.Reader(w.t.Context(), pieces(data(partedLarge)), to); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i := range 3 {
			w.wantObject(fmt.Sprint("obj", i), data(partedLarge))
		}
		w.wantSaved(0)
		w.wantNoUploads()
	})
}

// TestStreamOverOneConnection checks when a stream is sent over one connection although the caller asks for parts,
// that the reason is reported, and that no byte is lost.
func TestStreamOverOneConnection(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	sum := md5.Sum(content)
	for _, test := range []struct {
		name string
		with func(*upload.Options)
		spec func(*upload.Spec)
		call upload.CallOptions
		op   faults.Op // is refused
		why  string
	}{
		{name: "no store", with: func(o *upload.Options) { o.Store = nil }, why: "there is no store"},
		{name: "an MD5", spec: func(s *upload.Spec) { s.MD5 = sum[:] }, why: "has no MD5"},
		{name: "composed", with: func(o *upload.Options) { o.Parallel = o.Parallel.Joined(upload.ByCompose) }, why: "a stream is not composed"},
		{name: "a short window", with: func(o *upload.Options) { o.Window = int(2 * mib) }, why: "its memory is too small"},
		{name: "little memory", with: func(o *upload.Options) { o.Memory = 16 * mib }, why: "its memory is too small"},
		{name: "refused", op: faults.OpPartsStart, why: "multipart uploads are refused"},
		{name: "not readable", op: faults.OpGet, why: "cannot be read"},
		{name: "not savable", with: func(o *upload.Options) { o.Store = unsavable{o.Store} }, why: "cannot be saved"},
		{name: "too long", with: direct, call: upload.CallOptions{Size: new(int64(5 << 40))}, why: "its parts would hold"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
				if test.op != "" {
					w.addFaults(faults.Fault{Match: faults.Match{Op: test.op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
				}
				var why []string
				with := []func(*upload.Options){streamParts, func(o *upload.Options) {
					o.Observer = func(e upload.Event) {
						if e.Kind == upload.Warning {
							why = append(why, e.Cause)
						}
					}
				}}
				if test.with != nil {
					with = append(with, test.with)
				}
				spec := spec
				if test.spec != nil {
					test.spec(&spec)
				}
				res, err := withCall(w.uploader(with...), test.call).Reader(w.t.Context(), pieces(content), spec)
				if test.call.Size != nil {
					if !errors.Is(err, upload.ErrTruncated) {
						t.Error(err)
					}
				} else if err != nil || res.Parts != nil {
					t.Fatalf("%v, %+v\n%s", err, res, w.trace())
				} else {
					w.wantObject("obj", content)
				}
				if len(why) != 1 || !strings.HasPrefix(why[0], "the stream is sent over one connection: ") || !strings.Contains(why[0], test.why) {
					t.Errorf("warnings %q, want one with %q", why, test.why)
				}
				w.wantSaved(0)
				w.wantNoUploads()
			})
		})
	}
}

// unsavable is a store that saves nothing.
type unsavable struct{ state.Store }

func (unsavable) Save(context.Context, *state.Upload) error { return errors.New("the disk is full") }

// TestStreamInPartsLost checks an upload whose parts another client removes while they are sent: their bytes are no
// longer in memory.
func TestStreamInPartsLost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, slowly, func(w *world) {
		time.AfterFunc(time.Second, w.abortAll)
		_, err := w.uploader(streamParts, direct).Reader(w.t.Context(), pieces(data(partedLarge)), spec)
		if !errors.Is(err, session.ErrSessionLost) {
			t.Error(err)
		}
		w.wantNoObject("obj")
		w.wantSaved(0)
		w.wantNoUploads()
	})
}

// TestStreamInPartsCompletedLate checks an upload whose completion takes effect after its reply was lost and the
// destination was looked at. The multipart upload is then gone, and the object is that of the stream.
func TestStreamInPartsCompletedLate(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		plain := w.http
		var late *http.Request
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			of := req.URL.Query().Has("uploadId")
			switch {
			case of && req.Method == http.MethodPost && late == nil:
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return nil, err
				}
				late = req.Clone(context.Background())
				late.Body = io.NopCloser(bytes.NewReader(body))
				return nil, errReset
			case of && req.Method == http.MethodGet && late != nil && late.Body != nil:
				resp, err := plain.Transport.RoundTrip(late)
				if err != nil {
					return nil, err
				}
				_ = resp.Body.Close()
				late.Body = nil
			}
			return plain.Transport.RoundTrip(req)
		})}
		res, err := w.uploader(streamParts).Reader(w.t.Context(), pieces(data(partedLarge)), spec)
		if err != nil || res.BytesSent != partedLarge || late == nil || late.Body != nil {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.http = plain
		w.wantOnlyObject(data(partedLarge))
	})
}

// TestStreamInPartsCompressed checks that a compressed stream is sent in parts.
func TestStreamInPartsCompressed(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content, spec := random(partedLarge), spec
		spec.Gzip = true
		res, err := w.uploader(streamParts).Reader(w.t.Context(), pieces(content), spec)
		if err != nil || res.Parts == nil || res.Size != int64(len(content)) {
			t.Fatalf("%v, %+v", err, res)
		}
		w.wantUnzipped("obj", content, false)
		w.wantSaved(0)
		w.wantNoUploads()
	})
}

// TestStreamInPartsMemory checks that the requests of a stream at a time have at most the memory of the options, and
// that the bytes at risk have their bound.
func TestStreamInPartsMemory(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(100 * mib)
	for _, memory := range []int64{32 * mib, 64 * mib} {
		inBubble(t, distant(mib), func(w *world) {
			var mu sync.Mutex
			var now, most int64
			plain := w.http.Transport
			w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				now += max(req.ContentLength, 0)
				most = max(most, now)
				mu.Unlock()
				resp, err := plain.RoundTrip(req)
				mu.Lock()
				now -= max(req.ContentLength, 0)
				mu.Unlock()
				return resp, err
			})}
			up := w.uploader(func(o *upload.Options) { o.Memory, o.Parallel = memory, &upload.Parts{Connections: 64} })
			if _, err := up.Reader(w.t.Context(), bytes.NewReader(content), spec); err != nil {
				t.Fatal(err)
			}
			w.checkAtRisk(0)
			if budget := memory * 7 / 8; most > budget || most < budget/2 {
				t.Errorf("memory %d: %d bytes at a time", memory, most)
			}
			w.wantOnlyObject(content)
		})
	}
}

// TestStreamInPartsRandom sends streams of random sizes with random faults.
func TestStreamInPartsRandom(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 7))
			content := data(1 + rnd.Int64N(24*mib))
			plan := []faults.Fault{}
			ops := []faults.Op{faults.OpPartsPut, faults.OpPartsPut, faults.OpPartsPut, faults.OpPartsList, faults.OpPartsComplete, faults.OpGet}
			for range rnd.IntN(6) {
				f := everyFault[rnd.IntN(len(everyFault))].plan
				f.Match, f.Skip, f.Times = faults.Match{Op: ops[rnd.IntN(len(ops))]}, rnd.IntN(3), 1+rnd.IntN(2)
				plan = append(plan, f)
			}
			opts := &fakegcs.Options{NoIdempotencyTokens: true, NoMD5: rnd.IntN(2) == 0, Rate: mib << rnd.IntN(5), Latency: 20 * time.Millisecond, Faults: plan}
			inBubbleWithMD5(t, opts, func(w *world) {
				up := w.uploader(streamParts, func(o *upload.Options) {
					o.Parallel.Connections, o.Memory = 2+rnd.IntN(8), []int64{0, 24 * mib, 48 * mib}[rnd.IntN(3)]
				})
				if _, err := up.Reader(w.t.Context(), pieces(content), spec); err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, w.trace())
				}
				w.wantOnlyObject(content)
			})
		})
	}
}

// autoStreams sends streams in parts if several connections may be faster than one.
func autoStreams(o *upload.Options) { o.Parallel = &upload.Parts{Auto: true} }

// TestStreamAuto checks that Parts.Auto adds connections for a stream, and that a short stream has the requests of one
// connection.
func TestStreamAuto(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(120 * mib)
	took := func(with ...func(*upload.Options)) (took time.Duration) {
		inBubble(t, distant(2*mib), func(w *world) {
			began := time.Now()
			res, err := w.uploader(with...).Reader(w.t.Context(), bytes.NewReader(content), spec)
			if err != nil || (res.Parts != nil) != (len(with) > 0) {
				t.Fatalf("%v, %+v", err, res.Parts)
			}
			took = time.Since(began)
			w.checkAtRisk(0)
			w.wantOnlyObject(content)
		})
		return took
	}
	one, several := took(), took(autoStreams)
	if several*4 > one {
		t.Errorf("%v with auto, %v with one connection", several, one)
	}
	for _, size := range []int64{kib, q + 1, mib, 10 * mib, 16 * mib} {
		var traces [2]string
		var times [2]time.Duration
		for i, with := range [][]func(*upload.Options){nil, {autoStreams}} {
			inBubble(t, distant(8*mib), func(w *world) {
				began := time.Now()
				if _, err := w.uploader(with...).Reader(w.t.Context(), pieces(content[:size]), spec); err != nil {
					t.Fatal(err)
				}
				traces[i], times[i] = w.trace(), time.Since(began)
				w.wantOnlyObject(content[:size])
			})
		}
		if traces[0] != traces[1] || times[1] > times[0]+time.Millisecond {
			t.Errorf("%d bytes: %v and %v, requests\n%swant\n%s", size, times[1], times[0], traces[1], traces[0])
		}
	}
}

// TestStreamAutoRequests checks that a stream of up to four windows has no more requests about its object than over one
// connection, and takes no longer, and that a longer one is sent in parts.
func TestStreamAutoRequests(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(100 * mib)
	for _, size := range []int64{17 * mib, 32 * mib, 33 * mib, 64 * mib, 64*mib + 1, 100 * mib} {
		t.Run(fmt.Sprint(size/mib), func(t *testing.T) {
			t.Parallel()
			var requests [2][]string
			var times [2]time.Duration
			for i, with := range [][]func(*upload.Options){nil, {autoStreams}} {
				inBubble(t, &fakegcs.Options{NoMD5: true, Latency: 20 * time.Millisecond}, func(w *world) {
					began := time.Now()
					res, err := w.uploader(with...).Reader(w.t.Context(), bytes.NewReader(content[:size]), spec)
					if long := i == 1 && size > 64*mib; err != nil || (res.Parts != nil) != long {
						t.Fatalf("%v, %+v", err, res.Parts)
					}
					times[i] = time.Since(began)
					requests[i] = slices.DeleteFunc(strings.Fields(w.operations()), func(op string) bool {
						return strings.Contains("get "+aboutBucket, op) // may have been asked before the stream ended
					})
					w.wantOnlyObject(content[:size])
				})
			}
			t.Logf("one connection: %v, %v", requests[0], times[0])
			t.Logf("auto: %v, %v", requests[1], times[1])
			if size <= 64*mib && (len(requests[1]) > len(requests[0]) || times[1] > times[0]+time.Millisecond) {
				t.Errorf("%v in %v, over one connection %v in %v", requests[1], times[1], requests[0], times[0])
			}
			if size <= 32*mib && !slices.Equal(requests[1], requests[0]) {
				t.Errorf("%v, over one connection %v", requests[1], requests[0])
			}
		})
	}
}

// TestStreamAutoAsksEarly checks that a stream asks about its bucket while it is read, so that its first part is sent as
// soon as the stream is known to be long.
func TestStreamAutoAsksEarly(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(100 * mib)
	const latency = 20 * time.Millisecond
	inBubble(t, &fakegcs.Options{NoMD5: true, Latency: latency}, func(w *world) {
		var read int64
		var long time.Time // when the stream was known to be long
		r := readerFunc(func(p []byte) (int, error) {
			if read%mib == 0 {
				time.Sleep(3 * time.Millisecond)
			}
			n := copy(p[:min(int64(len(p)), mib-read%mib)], content[read:])
			if read <= 64*mib && read+int64(n) > 64*mib {
				long = time.Now()
			}
			if read += int64(n); n == 0 {
				return 0, io.EOF
			}
			return n, nil
		})
		if _, err := w.uploader(autoStreams).Reader(w.t.Context(), r, spec); err != nil {
			t.Fatal(err)
		}
		w.wantOnlyObject(content)
		for _, r := range w.srv.Requests() {
			if late := r.Time.Sub(long); r.Op == faults.OpPartsPut {
				if late > 3*latency {
					t.Errorf("the first part was sent %v after the stream was known to be long", late)
				}
				break
			}
		}
	})
}

// TestStreamAutoOverOneConnection checks when Parts.Auto sends a stream over one connection, and what it reports.
func TestStreamAutoOverOneConnection(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, test := range map[string]struct {
		with func(*upload.Options)
		rate int64 // of the source
		why  string
	}{
		"a slow source":        {nil, 12 * mib, "its source is slow"},
		"a fast source":        {nil, 24 * mib, ""},
		"a rate limit":         {func(o *upload.Options) { o.RateLimit = upload.NewRateLimit(8 * mib) }, 0, "reaches the rate limit"},
		"short requests":       {func(o *upload.Options) { o.ChunkSize = mib }, 0, "its requests have a maximum size"},
		"a short window":       {func(o *upload.Options) { o.Window = int(mib) }, 0, "its memory is too small"},
		"not saved":            {func(o *upload.Options) { o.Store = nil }, 0, "there is no store"},
		"no temporary objects": {func(o *upload.Options) { o.Parallel.Join = upload.ByMultipart }, 0, "would have to be composed"},
		"by compose":           {func(o *upload.Options) { o.Parallel.Join = upload.ByCompose }, 0, "not composed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(64*mib), func(w *world) {
				with := []func(*upload.Options){autoStreams}
				if test.with != nil {
					with = append(with, test.with)
				}
				r, in := io.Pipe()
				content := data(24 * mib)
				go func() {
					for rest := content; len(rest) > 0; rest = rest[q:] {
						if test.rate > 0 {
							time.Sleep(time.Duration(q) * time.Second / time.Duration(test.rate))
						}
						_, _ = in.Write(rest[:q])
					}
					_ = in.Close()
				}()
				res, err := w.uploader(with...).Reader(w.t.Context(), r, spec)
				if err != nil || (res.Parts != nil) != (test.why == "") {
					t.Errorf("%v, %+v", err, res.Parts)
				}
				why := strings.Join(w.undivided(), "\n")
				if (why == "") != (test.why == "") || !strings.Contains(why, test.why) || w.saw(upload.Warning) != 0 {
					t.Errorf("reported %q, want %q", why, test.why)
				}
				w.wantOnlyObject(content)
			})
		})
	}
}
