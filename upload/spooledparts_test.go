package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// steady returns a reader that takes a moment for each read, so that the upload begins before the input ends.
func steady(content []byte) io.Reader { return &steadyReader{content} }

type steadyReader struct{ rest []byte }

func (r *steadyReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond)
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// spoolParts sends streams in parts of 5 MiB over 4 connections, from a spool of 16 MiB.
func (w *world) spoolParts() func(*upload.Options) { return w.spoolPartsIn(16 * mib) }

// spoolPartsIn is spoolParts with a spool of at most limit bytes.
func (w *world) spoolPartsIn(limit int64) func(*upload.Options) {
	spooling := w.spooling(limit)
	return func(o *upload.Options) {
		streamParts(o)
		spooling(o)
	}
}

// spooledLarge is the size of a stream that spoolParts sends in 6 parts, and that does not fit in the spool.
const spooledLarge = 28*mib + 1

// wantNothing fails if anything is left at the service, in the store or in the spool.
func (w *world) wantNothing() {
	w.t.Helper()
	w.wantSaved(0)
	w.wantNoSpool()
	w.wantNoUploads()
}

// TestSpoolInParts sends spooled streams in parts, each byte once, and nothing is left. A stream that ends within its
// first window has one session, as without parts.
func TestSpoolInParts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, size := range []int64{0, q, partedWindow, partedLarge, spooledLarge} {
		inBubble(t, nil, func(w *world) {
			content, long := data(size), size > partedWindow
			if size == spooledLarge {
				content = random(size)
			}
			res, err := w.uploader(w.spoolParts()).Reader(w.t.Context(), steady(content), spec)
			if err != nil {
				t.Fatalf("%v\n%s", err, w.trace())
			}
			parts := int((size + multipart.MinPart - 1) / multipart.MinPart)
			want := "get bucket-permissions parts-start" + strings.Repeat(" parts-put", parts) + " parts-list parts-complete get"
			if got := w.operations(); long && got != want || !long && !strings.HasPrefix(got, "start ") {
				t.Errorf("requests %s, want %s", got, want)
			}
			if res.BytesSent != size || res.Size != size || res.Object.CRC32C != checksum.Update(0, content) || (res.Parts != nil) != long {
				t.Errorf("Result = %+v", res)
			}
			if long && (res.Parts.Count != parts || w.saw(upload.PartDone) != parts || w.saw(upload.Warning) != 1) {
				t.Errorf("%+v, %d warnings", res.Parts, w.saw(upload.Warning)) // the spool is small
			}
			w.wantOnlyObject(content)
			w.wantNoSpool()
		})
	}
}

// TestSpoolInPartsReadAtOnce checks that the size of a stream decides, and not whether its end was read before the upload
// was saved.
func TestSpoolInPartsReadAtOnce(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content, store := data(partedLarge), &slow{Store: w.store}
		store.late.Store(int64(time.Second))
		res, err := w.uploader(w.spoolPartsIn(48*mib), func(o *upload.Options) { o.Store = store }).Reader(w.t.Context(), pieces(content), spec)
		if err != nil || res.Parts == nil {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
		w.wantNoSpool()
	})
}

// TestSpoolInPartsCompressed sends a compressed stream in parts.
func TestSpoolInPartsCompressed(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content, s := random(partedLarge), spec
		s.Gzip = true
		res, err := w.uploader(w.spoolParts()).Reader(w.t.Context(), steady(content), s)
		if err != nil || res.Parts == nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		if got, err := w.srv.ReadObject("bkt", "obj"); err != nil || string(unzipped(t, got)) != string(content) {
			t.Errorf("object of %d bytes differs: %v", len(got), err)
		}
		w.wantNothing()
	})
}

// TestSpoolInPartsOverOneConnection checks when a spooled stream has one session.
func TestSpoolInPartsOverOneConnection(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	for why, test := range map[string]struct {
		with func(*world) func(*upload.Options)
		spec upload.Spec
		read io.Reader
	}{
		"too small for parts": {with: func(w *world) func(*upload.Options) { return w.spooling(14 * mib) }},
		"preconditions":       {spec: upload.Spec{IfGenerationMatch: new(int64)}},
		"its parts hold":      {with: func(*world) func(*upload.Options) { return autoStreams }},
		"source is slow":      {read: io.MultiReader(steady(content[:mib]), delayed(time.Minute), steady(content[mib:]))},
		"are refused":         {},
	} {
		inBubble(t, nil, func(w *world) {
			var causes []string
			with := func(*upload.Options) {}
			if test.with != nil {
				with = test.with(w)
			}
			if why == "are refused" {
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsStart}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
			}
			up := w.uploader(w.spoolParts(), with, func(o *upload.Options) {
				o.Observer = func(e upload.Event) {
					if e.Kind == upload.Warning || e.Kind == upload.Undivided {
						causes = append(causes, e.Cause)
					}
				}
			})
			s, r := spec, test.read
			s.IfGenerationMatch = test.spec.IfGenerationMatch
			if r == nil {
				r = steady(content)
			}
			res, err := up.Reader(w.t.Context(), r, s)
			if err != nil || res.Parts != nil || len(causes) != 1 || !strings.Contains(causes[0], why) {
				t.Errorf("%s: %v, %q\n%s", why, err, causes, w.trace())
			}
			w.wantOnlyObject(content)
			w.wantNoSpool()
		})
	}
}

// delayed returns a reader of nothing that takes a while.
func delayed(d time.Duration) io.Reader {
	return atEnd(func() { time.Sleep(d) })
}

// TestSpoolInPartsRates checks that parts of a stream are sent at a time, and that the spool stays below its limit
// while the input waits.
func TestSpoolInPartsRates(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(80 * mib)
	took := func(n int) (took time.Duration) {
		inBubble(t, distant(mib), func(w *world) {
			began := time.Now()
			up := w.uploader(w.spooling(48*mib), func(o *upload.Options) {
				if n > 1 {
					o.Parallel = &upload.Parts{Connections: n}
				}
				o.Observer = func(upload.Event) {
					if _, size := w.spooled(); size > 48*mib {
						t.Errorf("%d bytes in the spool", size)
					}
				}
			})
			if _, err := up.Reader(w.t.Context(), steady(content), spec); err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
			w.wantOnlyObject(content)
		})
		return took
	}
	if one, eight := took(1), took(8); eight*4 > one {
		t.Errorf("%v with eight connections, %v with one", eight, one)
	}
}

// TestSpoolInPartsSurvives checks that a spooled stream in parts is uploaded despite each fault of each of its
// requests.
func TestSpoolInPartsSurvives(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	eachFault(t, 3, multipartPoints, func(w *world, at string, do faults.Action) {
		res, err := w.uploader(w.spoolParts()).Reader(w.t.Context(), steady(content), spec)
		if err != nil || res.Parts == nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantFaults()
		w.wantObject("obj", content)
		w.wantSaved(0)
		w.wantNoSpool()
		if at != "start" { // a reply that is lost has the only ID
			w.wantNoUploads()
		}
	})
}

// TestSpoolInPartsFails checks that an upload that fails before its input ends leaves nothing, and that another one
// can be resumed.
func TestSpoolInPartsFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content, broken := data(partedLarge), errors.New("broken")
	refuse := func(op faults.Op, status int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
	}
	for _, test := range []struct {
		name  string
		at    int64 // where the reader fails; 0 if it does not
		spec  func(*upload.Spec)
		call  upload.CallOptions
		fault faults.Fault
		err   error
		kept  bool // the upload is resumable
	}{
		{name: "the reader after a part", at: 3 * multipart.MinPart, err: broken},
		{name: "the confirmation", call: upload.CallOptions{Confirm: func(context.Context) error { return broken }}, err: broken},
		{name: "the size", call: upload.CallOptions{Size: new(int64(partedLarge + 1))}, err: upload.ErrTruncated},
		{name: "the checksum", spec: func(s *upload.Spec) { s.CRC32C = new(uint32(1)) }, err: session.ErrChecksum},
		{name: "a part", fault: refuse(faults.OpPartsPut, 403), err: session.ErrPermission},
		{name: "the last part", fault: func() faults.Fault {
			f := refuse(faults.OpPartsPut, 403)
			f.Match.Nth = 4
			return f
		}(), err: session.ErrPermission, kept: true},
		{name: "parts in an outage", fault: refuse(faults.OpPartsPut, 503), err: session.ErrRetriesExhausted, kept: true},
		{name: "damaged parts", fault: faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: -1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}, err: session.ErrChecksum, kept: true},
		{name: "the list", fault: refuse(faults.OpPartsList, 503), err: session.ErrRetriesExhausted, kept: true},
		{name: "the completion", fault: refuse(faults.OpPartsComplete, 403), err: session.ErrPermission, kept: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if test.fault.Times != 0 {
					w.addFaults(test.fault)
				}
				s, r := spec, steady(content)
				if test.spec != nil {
					test.spec(&s)
				}
				if test.at > 0 {
					r = io.MultiReader(steady(content[:test.at]), iotest.ErrReader(broken))
				}
				res, err := withCall(w.uploader(w.spoolPartsIn(48*mib)), test.call).Reader(w.t.Context(), r, s)
				if !errors.Is(err, test.err) || res.Object != nil || res.Resumable != test.kept || res.Leftover != nil {
					t.Errorf("%v, %+v\n%s", err, res, w.trace())
				}
				w.wantNoObject("obj")
				if test.kept {
					w.srv.ClearFaults()
					if h, err := w.uploader().Query(w.t.Context(), res.ID); err != nil || h.State != upload.SessionOpen || h.Stored > partedLarge {
						t.Errorf("Query: %+v, %v", h, err)
					}
					if again, err := w.uploader().Resume(w.t.Context(), res.ID); err != nil || !again.Resumed || again.Parts == nil && again.BytesSent > 0 {
						t.Errorf("Resume: %+v, %v\n%s", again, err, w.trace())
					}
					w.wantObject("obj", content)
				}
				w.wantNothing()
			})
		})
	}
}

// watched is a store that calls the function over after each save of an upload that Prune would remove.
type watched struct {
	state.Store
	over func()
}

func (s *watched) Save(ctx context.Context, t *state.Upload) error {
	err := s.Store.Save(ctx, t)
	if err == nil && t.Parts != nil && t.Parts.Over {
		s.over()
	}
	return err
}

// TestSpoolInPartsRemovedByTheNext takes a copy of what a process leaves that is killed while it removes a stream. The
// saved upload is one to be removed before the first file is gone, so that the next stream in parts removes all.
func TestSpoolInPartsRemovedByTheNext(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		var next *world
		store := &watched{w.store, func() {
			if _, size := w.spooled(); size < mib {
				t.Errorf("%d bytes are in the spool", size)
			}
			next = w.snapshot()
		}}
		r := io.MultiReader(steady(content), iotest.ErrReader(errors.New("broken")))
		if _, err := w.uploader(w.spoolParts(), func(o *upload.Options) { o.Store = store }).Reader(w.t.Context(), r, spec); err == nil || next == nil {
			t.Fatal(err)
		}
		w.wantNothing()
		next.moveSpool()
		other := spec
		other.Object = "other"
		if _, err := next.uploader(next.spoolParts()).Reader(w.t.Context(), steady(content), other); err != nil {
			t.Error(err)
		}
		w.wantNoObject("obj")
		next.wantNothing()
	})
}

// kill makes the requests of w wait from the one with a number on, before or after the service has answered it. It
// returns a channel that is closed then, and a function that ends the process: nothing that it does reaches the
// service.
func (w *world) kill(n int64, after bool) (reached chan struct{}, die func()) {
	var count atomic.Int64
	reached, dead := make(chan struct{}), make(chan struct{})
	plain := w.http.Transport
	w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (resp *http.Response, err error) {
		at := count.Add(1)
		if at < n || at == n && after {
			resp, err = plain.RoundTrip(req)
		}
		if at < n {
			return resp, err
		}
		if at == n {
			close(reached)
		}
		<-dead
		if resp != nil {
			_ = resp.Body.Close()
		}
		return nil, errDead
	})}
	return reached, func() { close(dead) }
}

// TestSpoolInPartsKilled kills a process before and after each request. Another process completes the stream if its
// end was recorded. Otherwise the stream is never published, and its next stream in parts, or Prune, removes all that
// is left.
func TestSpoolInPartsKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(spooledLarge)
	var resumed, incomplete atomic.Int64
	t.Run("at", func(t *testing.T) {
		for n := int64(3); n <= 12; n++ { // the first requests are about the object and the bucket, and nothing is in parts before
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprint(n, after), func(t *testing.T) {
					t.Parallel()
					inBubble(t, distant(8*mib), func(w *world) {
						plain := w.http
						reached, die := w.kill(n, after)
						ctx, cancel := context.WithCancel(w.t.Context())
						ended := make(chan struct{})
						go func() {
							defer close(ended)
							_, _ = w.uploader(w.spoolParts()).Reader(ctx, steady(content), spec)
						}()
						<-reached
						next := w.snapshot()
						next.http = plain
						die()
						cancel()
						<-ended
						id := next.moveSpool()
						saved, err := firstOf(next.uploader().Saved(w.t.Context()))
						if err != nil {
							t.Fatal(err)
						}
						up := next.uploader(next.spoolParts())
						if !saved.Incomplete {
							resumed.Add(1)
							if res, err := up.Resume(w.t.Context(), id); err != nil || res.BytesSent > 16*mib {
								t.Errorf("Resume: %+v, %v\n%s", res, err, w.trace())
							}
							w.wantObject("obj", content)
						} else {
							incomplete.Add(1)
							if _, err := up.Resume(w.t.Context(), id); !errors.Is(err, upload.ErrIncomplete) {
								t.Errorf("Resume: %v", err)
							}
							if n%2 == 0 {
								for p, err := range up.Prune(w.t.Context(), nil) {
									if err != nil || !p.Deleted {
										t.Errorf("Prune: %+v, %v", p, err)
									}
								}
							} else {
								other := spec
								other.Object = "other"
								if _, err := up.Reader(w.t.Context(), steady(content), other); err != nil {
									t.Error(err)
								}
							}
							w.wantNoObject("obj")
						}
						if n > 3 { // the saved upload names the multipart upload
							next.wantNothing()
						}
					})
				})
			}
		}
	})
	if resumed.Load() == 0 || incomplete.Load() == 0 {
		t.Errorf("%d were resumed, %d did not end", resumed.Load(), incomplete.Load())
	}
}

// TestSpoolInPartsStopped pauses and cancels a stream before and after its input has ended.
func TestSpoolInPartsStopped(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	for _, whole := range []bool{false, true} {
		for _, pause := range []bool{false, true} {
			t.Run(fmt.Sprint(whole, pause), func(t *testing.T) {
				t.Parallel()
				inBubble(t, distant(mib), func(w *world) {
					up := w.uploader(w.spoolPartsIn(48 * mib))
					in, out := io.Pipe()
					go func() {
						_, _ = out.Write(content)
						if whole {
							out.Close()
						}
					}()
					ended := make(chan called, 1)
					go func() {
						res, err := up.Reader(w.t.Context(), endOfPipe{in}, spec)
						ended <- called{res, err}
					}()
					time.Sleep(3 * time.Second)
					saved, err := firstOf(up.Saved(w.t.Context()))
					if err != nil || !saved.InUse || saved.Incomplete == whole || w.multipartUploads() != 1 {
						t.Fatalf("%+v, %v", saved, err)
					}
					stop, why := up.Cancel, session.ErrCanceled
					if pause {
						stop, why = up.Pause, upload.ErrPaused
					}
					if err := stop(w.t.Context(), saved.ID); err != nil && (whole || !errors.Is(err, state.ErrNotFound)) {
						t.Error(err)
					}
					if got := <-ended; !errors.Is(got.err, why) || got.res.Resumable != (pause && whole) {
						t.Errorf("%+v", got)
					}
					if pause && whole {
						if res, err := up.Resume(w.t.Context(), saved.ID); err != nil || !res.Resumed {
							t.Errorf("Resume: %+v, %v", res, err)
						}
						w.wantObject("obj", content)
					} else {
						w.wantNoObject("obj")
					}
					w.wantNothing()
				})
			})
		}
	}
}

// TestSpoolInPartsOutlastsAnOutage checks that a stream whose input lasts waits for the service and for the store,
// however long they are away.
func TestSpoolInPartsOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		in, end := w.stream(w.uploader(w.spoolParts()), spec)
		_, _ = in.Write(content[:partedWindow+1])
		time.Sleep(time.Second)
		w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
		_, _ = in.Write(content[partedWindow+1 : 3*multipart.MinPart])
		time.Sleep(3 * time.Hour)
		if w.saw(upload.Warning) != 2 { // one is about the small spool
			t.Errorf("%d warnings", w.saw(upload.Warning))
		}
		w.srv.ClearFaults()
		// The next failure is the first one of another outage.
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: 3, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		_, _ = in.Write(content[3*multipart.MinPart:])
		if res, err := end(); err != nil || res.Parts == nil {
			t.Errorf("%v, %+v", err, res)
		}
		w.wantOnlyObject(content)
	})
	inBubble(t, nil, func(w *world) {
		content := random(spooledLarge)
		store := &process{Store: w.store}
		in, end := w.stream(w.uploader(w.spoolParts(), func(o *upload.Options) { o.Store = store }), spec)
		_, _ = in.Write(content[:partedWindow+1])
		time.Sleep(time.Second)
		store.dead.Store(true)
		began := time.Now()
		if _, _ = in.Write(content[partedWindow+1:]); time.Since(began) > time.Minute {
			t.Error("the input waited for the store")
		}
		time.AfterFunc(time.Hour, func() {
			if saved, err := firstOf(w.uploader().Saved(w.t.Context())); err != nil || !saved.Incomplete {
				t.Errorf("the end was recorded before the parts were saved: %+v, %v", saved, err)
			}
			if _, size := w.spooled(); size > 6*mib { // the last part is sent after the end
				t.Errorf("%d bytes are in the spool, which the service has", size)
			}
			store.dead.Store(false)
		})
		if _, err := end(); err != nil {
			t.Error(err)
		}
		w.wantOnlyObject(content)
		w.wantNoSpool()
	})
}

// TestSpoolInPartsEndsInAnOutage checks that the end of the input is recorded while the service is away, although it is
// not known yet whether the stream is sent in parts.
func TestSpoolInPartsEndsInAnOutage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	for _, do := range []faults.Action{{Effect: faults.EffectStatus, Status: 503}, {Effect: faults.EffectStall}} {
		inBubble(t, nil, func(w *world) {
			w.down(do)
			ctx, interrupt := context.WithCancel(w.t.Context())
			ended := make(chan called, 1)
			go func() {
				res, err := w.uploader(w.spoolPartsIn(48*mib)).Reader(ctx, steady(content), spec)
				ended <- called{res, err}
			}()
			time.Sleep(10 * time.Second)
			if saved, err := firstOf(w.uploader().Saved(w.t.Context())); err != nil || saved.Incomplete {
				t.Errorf("the end of the input is not recorded: %+v, %v", saved, err)
			}
			interrupt()
			got := <-ended
			w.srv.ClearFaults()
			if _, err := w.uploader().Resume(w.t.Context(), got.res.ID); err != nil {
				t.Errorf("Resume: %v\n%s", err, w.trace())
			}
			w.wantOnlyObject(content)
			w.wantNoSpool()
		})
		// A service without an answer to the start of a multipart upload has sessions.
		inBubble(t, nil, func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsStart}, Times: -1, Do: do})
			began := time.Now()
			res, err := w.uploader(w.spoolPartsIn(48*mib)).Reader(w.t.Context(), steady(content), spec)
			if err != nil || res.Parts != nil || time.Since(began) > 10*time.Second {
				t.Errorf("%v after %v, %+v\n%s", err, time.Since(began), res, w.trace())
			}
			w.wantOnlyObject(content)
			w.wantNoSpool()
		})
	}
}

// TestSpoolInPartsUnsaved checks that bytes stay on disk after the end of the input while the store does not have their
// parts, so that another process can compare them.
func TestSpoolInPartsUnsaved(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, distant(mib), func(w *world) {
		content := data(partedLarge)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		store := &process{Store: w.store}
		in, end := w.stream(w.uploader(w.spoolPartsIn(48*mib), func(o *upload.Options) { o.Store = store }), spec)
		_, _ = in.Write(content)
		time.AfterFunc(time.Second, func() { store.dead.Store(true) }) // the parts take five
		res, err := end()
		if !errors.Is(err, session.ErrPermission) {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.srv.ClearFaults()
		if again, err := w.uploader().Resume(w.t.Context(), res.ID); err != nil {
			t.Errorf("Resume: %v, %+v\n%s", err, again, w.trace())
		}
		w.wantObject("obj", content)
		w.wantNothing()
	})
}

// heldParts delays the next part on each of the four connections. Held alone, the first part to arrive could be any of them.
var heldParts = faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: 4, Do: faults.Action{Effect: faults.EffectDelay, For: 5 * time.Second}}

// TestSpoolInPartsLost checks what follows if another client aborts the multipart upload, or replaces a part of it: the
// upload starts over if all bytes are on disk. Otherwise the stream is incomplete.
func TestSpoolInPartsLost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, test := range []struct {
		sent int64 // the bytes whose parts have been stored when the other client comes
		does func(*world)
		says string // "" if the upload starts over
	}{
		{0, (*world).abortAll, ""},
		{partedLarge - 1, (*world).abortAll, "the multipart upload no longer exists"},
		{partedLarge - 1, (*world).replacePart, "the service no longer has part 1, and its bytes were removed from the disk"},
	} {
		inBubble(t, nil, func(w *world) {
			content := data(partedLarge)
			in, end := w.stream(w.uploader(w.spoolParts()), spec)
			_, _ = in.Write(content[:test.sent])
			time.Sleep(time.Second)
			w.addFaults(heldParts)
			time.AfterFunc(2*time.Second, func() { test.does(w) })
			_, _ = in.Write(content[test.sent:])
			res, err := end()
			if test.says == "" {
				if err != nil || w.saw(upload.Restarted) != 1 {
					t.Errorf("%v\n%s", err, w.trace())
				}
				w.wantOnlyObject(content)
				w.wantNoSpool()
				return
			}
			if !errors.Is(err, upload.ErrIncomplete) || !errors.Is(err, session.ErrSessionLost) || res.Resumable || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("%v, %+v\n%s", err, res, w.trace())
			}
			w.wantSaved(1)
			for p, err := range w.uploader().Prune(w.t.Context(), nil) {
				if err != nil || p.Deleted != (p.State == upload.SessionGone) {
					t.Errorf("Prune: %+v, %v", p, err)
				}
			}
			if err := w.uploader().Cancel(w.t.Context(), res.ID); err != nil && !errors.Is(err, state.ErrNotFound) {
				t.Error(err)
			}
			w.wantNothing()
		})
	}
}

// TestSpoolInPartsLostUnsaved loses the multipart upload of a stream whose input lasts, while the store is away. The stream
// waits for the store, and starts over.
func TestSpoolInPartsLostUnsaved(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		store := &process{Store: w.store}
		in, end := w.stream(w.uploader(w.spoolPartsIn(48*mib), func(o *upload.Options) { o.Store = store }), spec)
		w.addFaults(heldParts)
		_, _ = in.Write(content[:partedWindow+1])
		time.Sleep(time.Second)
		store.dead.Store(true)
		w.abortAll()
		time.Sleep(time.Hour)
		store.dead.Store(false)
		_, _ = in.Write(content[partedWindow+1:])
		if _, err := end(); err != nil || w.saw(upload.Restarted) == 0 {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
		w.wantNoSpool()
	})
}

// replacePart replaces the first part of each multipart upload to the object, as another client would.
func (w *world) replacePart() {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		req, err := http.NewRequest("PUT", "http://gcs.test/bkt/obj?partNumber=1&uploadId="+id, strings.NewReader("other"))
		if err != nil {
			w.t.Fatal(err)
		}
		resp, err := w.http.Do(req)
		if err != nil || resp.StatusCode != 200 {
			w.t.Fatal(err)
		}
	}
}

// TestSpoolInPartsLostDuringASave checks that no byte is removed from the disk because of a part of a multipart upload
// that was lost meanwhile. A slow save has that part, and ends when all bytes must be sent again.
func TestSpoolInPartsLostDuringASave(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut, Nth: 4}, Do: faults.Action{Effect: faults.EffectDelay, For: 3 * time.Second}})
		store := &slow{Store: w.store}
		with := []func(*upload.Options){w.spoolPartsIn(48 * mib), func(o *upload.Options) { o.Store = store }}
		// The first three parts are held back until the end of the input is recorded.
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: 3, Do: faults.Action{Effect: faults.EffectDelay, For: time.Second}})
		time.AfterFunc(500*time.Millisecond, func() { store.late.Store(int64(5 * time.Second)) })
		time.AfterFunc(2*time.Second, w.abortAll)
		if res, err := w.uploader(with...).Reader(w.t.Context(), steady(content), spec); err != nil || w.saw(upload.Restarted) != 1 {
			t.Errorf("%v, %+v\n%s", err, res, w.trace())
		}
		w.wantObject("obj", content)
		w.wantNothing()
	})
}

// slow is a store whose saves take a while.
type slow struct {
	state.Store
	late atomic.Int64
}

func (s *slow) Save(ctx context.Context, t *state.Upload) error {
	time.Sleep(time.Duration(s.late.Load()))
	return s.Store.Save(ctx, t)
}

// TestSpoolInPartsDamaged checks that a byte that changes on disk is not published.
func TestSpoolInPartsDamaged(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut, Nth: 4}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		res, err := w.uploader(w.spoolParts()).Reader(w.t.Context(), steady(content), spec)
		if !errors.Is(err, session.ErrPermission) || !res.Resumable {
			t.Fatalf("%v, %+v", err, res)
		}
		w.srv.ClearFaults()
		segments, err := filepath.Glob(filepath.Join(w.spoolDir(), res.ID, "*.bytes"))
		if err != nil || len(segments) == 0 {
			t.Fatal(segments, err)
		}
		if err := os.WriteFile(segments[len(segments)-1], []byte{content[partedLarge-1] ^ 1}, 0o600); err != nil {
			t.Fatal(err)
		}
		if res, err := w.uploader().Resume(w.t.Context(), res.ID); !errors.Is(err, upload.ErrIncomplete) || res.Resumable {
			t.Errorf("%v, %+v\n%s", err, res, w.trace())
		}
		w.wantNoObject("obj")
		if err := w.uploader().Cancel(w.t.Context(), res.ID); err != nil {
			t.Error(err)
		}
		w.wantNothing()
	})
}

// TestSpoolInPartsLease takes the lease of a stream away. It stops, and the other process completes the object.
func TestSpoolInPartsLease(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 5 * mib / 2}, func(w *world) {
		spoolParts := w.spoolPartsIn(48 * mib)
		a, b := w.machine("a", spoolParts, func(o *upload.Options) { o.ChunkSize = 0 }), w.machine("b", spoolParts, func(o *upload.Options) { o.ChunkSize = 0 })
		content := data(partedLarge)
		ended := make(chan error, 1)
		go func() {
			_, err := a.Reader(w.t.Context(), steady(content), spec)
			ended <- err
		}()
		time.Sleep(time.Second)
		saved, err := firstOf(b.Saved(w.t.Context()))
		if err != nil || saved.Incomplete {
			t.Fatalf("%+v, %v", saved, err)
		}
		a.net.suspend()
		time.Sleep(2 * leaseTTL)
		if _, err := b.Query(w.t.Context(), saved.ID); err != nil {
			t.Error(err)
		}
		a.net.wake()
		if err := <-ended; !errors.Is(err, state.ErrInUse) {
			t.Errorf("%v\n%s", err, w.trace())
		}
		if _, err := b.Resume(w.t.Context(), saved.ID); err != nil {
			t.Errorf("Resume: %v\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
		w.wantNoSpool()
		if n := w.multipartUploads(); n != 0 {
			t.Errorf("%d multipart uploads are left", n)
		}
	})
}
