package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/grace"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

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
		w.done(up.Reader(w.t.Context(), pieces(content), never))
		w.wantObject("other", content)
		never.Object = "later"
		r := io.MultiReader(bytes.NewReader(content), atEnd(func() {
			w.fails(nil)(up.Bytes(w.t.Context(), []byte("x"), never))
		}))
		w.fails(session.ErrPrecondition)(up.Reader(w.t.Context(), r, never))
		w.wantObject("later", []byte("x"))
		w.wantNothing()
	})
	inBubble(t, nil, func(w *world) {
		require.NoError(t, w.srv.CreateBucket(fakegcs.Bucket{Name: "kept", Retention: time.Minute}))
		kept := upload.Spec{Bucket: "kept", Object: "obj"}
		up := w.uploader(streamParts, beyond)
		w.done(up.Reader(w.t.Context(), pieces(content[:partedWindow+1]), kept))
		why := w.causes(upload.Warning)
		if want := fmt.Sprintf("more than %d bytes", 2*multipart.MinPart); len(why) != 1 || !strings.Contains(why[0], want) || !strings.Contains(why[0], "retention policy") {
			t.Errorf("warnings %q", why)
		}
		w.fails(session.ErrInvalid)(up.Reader(w.t.Context(), pieces(content), upload.Spec{Bucket: "kept", Object: "long"}))
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
		w.wantNothing()
	})
	inBubble(t, slowly, func(w *world) {
		wr := w.uploader(streamParts).NewWriter(w.t.Context(), spec)
		w.done(wr.Write(data(partedLarge)))
		if w.multipartUploads() != 1 {
			t.Error("the Writer does not send parts")
		}
		wr.Abort()
		w.wantNoObject("obj")
		w.wantNothing()
		wr = w.uploader(streamParts).NewWriter(w.t.Context(), spec)
		w.done(io.Copy(wr, pieces(data(partedLarge))))
		if err := wr.Close(); err != nil || wr.Result().Parts == nil {
			t.Error(err)
		}
		w.wantOnlyObject(data(partedLarge))
	})
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
		w.done(up.Reader(w.t.Context(), pieces(data(partedLarge)), spec))
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
		ended := calling(func() (*upload.Result, error) { return up.Reader(w.t.Context(), pieces(data(partedLarge)), spec) })
		<-stored
		ids, err := w.store.List(w.t.Context())
		if err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
		w.wantError(up.Pause(w.t.Context(), ids[0]), session.ErrInvalid)
		w.fails(session.ErrInvalid)(up.TakeOver(w.t.Context(), ids[0], w.file(data(q))))
		doc, err := w.store.Load(w.t.Context(), ids[0])
		require.NoError(t, err)
		w.fails(session.ErrInvalid)(up.Import(w.t.Context(), doc, w.file(nil)))
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
		w.wantNothing()
	})
}

// TestStreamInPartsLeftovers checks that a stream does not wait for the removal of what an earlier one left, and that a
// removal that the service refuses is reported once.
func TestStreamInPartsLeftovers(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	refused := faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}
	for warnings, do := range []faults.Action{{Effect: faults.EffectDelay, For: time.Minute}, refused} {
		inBubble(t, slowly, func(w *world) {
			next := w.killAt(memoryStream, content, 5, true)
			next.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsAbort}, Times: 1 + warnings, Do: do})
			for i := range 2 {
				began := time.Now()
				w.done(memoryStream.send(w.t.Context(), next, memoryStream.uploader(next), spec, content))
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("the stream took %v", took)
				}
				if n := next.saw(upload.Warning); n != warnings+1+i { // one of each stream is about its limit
					t.Errorf("%d warnings after stream %d", n, i)
				}
				next.wantSaved(max(warnings, 1-i)) // the next stream tries again
			}
			next.srv.ClearFaults()
			next.pruneRemoved(next.uploader())
		})
	}
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
				w.fails(nil)(up.Reader(w.t.Context(), pieces(data(partedLarge)), to))
			})
		}
		all.Wait()
		for i := range 3 {
			w.wantObject(fmt.Sprint("obj", i), data(partedLarge))
		}
		w.wantNothing()
	})
}

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
		w.wantNothing()
	})
}

// completeLate makes the first completion of a multipart upload fail with the error of lost. It takes effect when the
// parts are listed again for the time with a number, which late reports.
func (w *world) completeLate(list int, lost func() error) (late func() bool) {
	plain := w.http.Transport
	var completion *http.Request
	w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		of := req.URL.Query().Has("uploadId")
		switch {
		case of && req.Method == http.MethodPost && completion == nil:
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			completion = req.Clone(context.Background())
			completion.Body = io.NopCloser(bytes.NewReader(body))
			return nil, lost()
		case of && req.Method == http.MethodGet && completion != nil:
			if list--; list == 0 {
				resp, err := plain.RoundTrip(completion)
				if err != nil {
					return nil, err
				}
				_ = resp.Body.Close()
			}
		}
		return plain.RoundTrip(req)
	})}
	return func() bool { return list <= 0 }
}

// TestCompletedLate checks an upload whose completion takes effect after its reply was lost, when the stream or the next
// call for the file lists the parts. The multipart upload is then gone, and the object is recognized.
func TestCompletedLate(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		late := w.completeLate(1, func() error { return errReset })
		res, err := w.uploader(streamParts).Reader(w.t.Context(), pieces(content), spec)
		if err != nil || res.BytesSent != partedLarge || !late() {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
	})
	for list := 1; list <= 3; list++ {
		inBubble(t, nil, func(w *world) {
			content := data(multipartLarge)
			path := w.file(content)
			ctx, stop := context.WithCancel(w.t.Context())
			defer stop()
			late := w.completeLate(list, func() error { stop(); return context.Canceled })
			w.fails(context.Canceled)(w.uploader(byMultipart).File(ctx, path, spec))
			res, err := w.uploader(byMultipart).File(w.t.Context(), path, spec)
			if err != nil || res.BytesSent != 0 || w.saw(upload.Restarted) != 0 || list < 3 && !late() {
				t.Errorf("list %d: sent %d bytes, %v\n%s", list, res.BytesSent, err, w.trace())
			}
			w.wantOnlyObject(content)
		})
	}
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
			w.done(up.Reader(w.t.Context(), bytes.NewReader(content), spec))
			w.checkAtRisk(0)
			if budget := memory * 7 / 8; most > budget || most < budget/2 {
				t.Errorf("memory %d: %d bytes at a time", memory, most)
			}
			w.wantOnlyObject(content)
		})
	}
}

// autoStreams sends streams in parts if several connections may be faster than one.
func autoStreams(o *upload.Options) { o.Parallel = &upload.Parts{Auto: true} }

// TestStreamAuto checks that Parts.Auto adds connections for a stream.
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
}

// TestAutoRequests checks that Parts.Auto sends a long source in parts. A stream of up to four windows has no more requests
// about its object than over one connection, and takes no longer. A short source has the same requests.
func TestAutoRequests(t *testing.T) {
	t.Parallel()
	skipShort(t)
	stream := &partedSource{name: "stream", input: func(content []byte) io.Reader { return bytes.NewReader(content) }}
	content := data(100 * mib)
	for _, test := range []struct {
		*partedSource
		rate        int64 // of a connection
		size        int64
		same, parts bool
	}{
		{stream, 8 * mib, kib, true, false}, {stream, 8 * mib, q + 1, true, false}, {stream, 8 * mib, mib, true, false},
		{stream, 8 * mib, 10 * mib, true, false}, {stream, 8 * mib, 16 * mib, true, false},
		{stream, 0, 17 * mib, true, false}, {stream, 0, 32 * mib, true, false}, {stream, 0, 33 * mib, false, false},
		{stream, 0, 64 * mib, false, false}, {stream, 0, 64*mib + 1, false, true}, {stream, 0, 100 * mib, false, true},
		{zippedFile, 8 * mib, 2*partedWindow - mib, true, false}, {zippedFile, 8 * mib, 4*partedWindow + mib, false, true},
	} {
		t.Run(fmt.Sprint(test.name, test.size), func(t *testing.T) {
			t.Parallel()
			var requests [2][]string
			var traces [2]string
			var times [2]time.Duration
			for i, auto := range []func(*upload.Options){func(*upload.Options) {}, autoStreams} {
				inBubble(t, &fakegcs.Options{Rate: test.rate, Latency: 20 * time.Millisecond}, func(w *world) {
					up := w.uploader(auto, func(o *upload.Options) {
						if test.gzip {
							o.Window = int(partedWindow)
						}
						if test.gzip && i == 1 {
							o.Parallel = upload.AutoPartsFrom(0, mib, multipart.MinPart)
						}
					})
					began := time.Now()
					res, err := test.send(w.t.Context(), w, up, spec, content[:test.size])
					if err != nil || (res.Parts != nil) != (test.parts && i == 1) {
						t.Fatalf("%v, %+v", err, res.Parts)
					}
					times[i], traces[i] = time.Since(began), w.trace()
					requests[i] = slices.DeleteFunc(strings.Fields(w.operations()), func(op string) bool {
						return strings.Contains("get "+aboutBucket, op) // may have been asked before the stream ended
					})
					test.wantObject(w, content[:test.size])
					w.wantNothing()
				})
			}
			if !test.parts && (len(requests[1]) > len(requests[0]) || times[1] > times[0]+time.Millisecond) {
				t.Errorf("%v in %v, over one connection %v in %v", requests[1], times[1], requests[0], times[0])
			}
			if test.same && (!slices.Equal(requests[1], requests[0]) || test.rate > 0 && traces[1] != traces[0]) {
				t.Errorf("requests\n%sover one connection\n%s", traces[1], traces[0])
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
		w.done(w.uploader(autoStreams).Reader(w.t.Context(), r, spec))
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
