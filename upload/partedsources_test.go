package upload_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// partedWindow is the first window of the sources that streamParts sends: a shorter one gets a session.
const partedWindow = 6 * mib

// streamParts sends a source of unknown size in parts of 5 MiB over 4 connections.
func streamParts(o *upload.Options) {
	o.Window, o.Parallel = int(partedWindow), &upload.Parts{Connections: 4, MinPart: multipart.MinPart}
}

// The sizes of sources that streamParts sends in parts.
const (
	partedLarge  = partedWindow + 2*multipart.MinPart + 1   // in 4 parts: the first window, and 3 of the rest
	zippedLarge  = partedWindow + 3*multipart.MinPart + mib // in 5 parts, also if it is compressed
	spooledLarge = 28*mib + 1                               // in 6 parts, if it is a stream in a spool that is smaller
)

// direct makes the parts those of a multipart upload to the object.
func direct(o *upload.Options) { o.Parallel = o.Parallel.Joined(upload.ByMultipart) }

// beyond makes streams need several multipart uploads.
func beyond(o *upload.Options) { o.Parallel = o.Parallel.AtMost(2) }

// alone sends a stream over one connection.
func alone(o *upload.Options) { o.Parallel, o.Window = nil, 0 }

// partedSource is a kind of source whose size is not known when it is divided.
type partedSource struct {
	name  string
	input func(content []byte) io.Reader // nil if it is a file
	gzip  bool
	spool int64 // the limit of the spool, or 0
	with  func(*upload.Options)
}

var (
	memoryStream   = &partedSource{name: "stream", input: pieces, with: direct}
	composedStream = &partedSource{name: "composed stream", input: pieces, with: beyond}
	zippedStream   = &partedSource{name: "compressed stream", input: pieces, gzip: true, with: direct}
	spooledStream  = &partedSource{name: "spooled stream", input: steady, spool: 48 * mib}
	tightStream    = &partedSource{name: "stream in a small spool", input: steady, spool: 16 * mib}
	zippedSpooled  = &partedSource{name: "compressed and spooled stream", input: steady, gzip: true, spool: 16 * mib}
	zippedFile     = &partedSource{name: "compressed file", gzip: true}

	// Over one connection:
	inSession        = &partedSource{name: "stream in a session", input: pieces, spool: 1 << 30, with: alone}
	smallSpool       = &partedSource{name: "longer than its spool", input: pieces, spool: 4 * mib, with: alone}
	zippedSmallSpool = &partedSource{name: "compressed, longer than its spool", input: pieces, gzip: true, spool: 4 * mib, with: alone}
)

// sources are several kinds of sources.
type sources []*partedSource

// uploader returns an Uploader that sends sources of the kind in parts. The functions change its options.
func (k *partedSource) uploader(w *world, with ...func(*upload.Options)) *upload.Uploader {
	w.t.Helper()
	all := []func(*upload.Options){streamParts}
	if k.spool > 0 {
		all = append(all, w.spooling(k.spool))
	}
	if k.with != nil {
		all = append(all, k.with)
	}
	return w.uploader(append(all, with...)...)
}

// send uploads content. A file is written by the first call.
func (k *partedSource) send(ctx context.Context, w *world, up *upload.Uploader, s upload.Spec, content []byte) (*upload.Result, error) {
	s.Gzip = k.gzip
	if k.input != nil {
		return up.Reader(ctx, k.input(content), s)
	}
	path := filepath.Join(w.dir, "source")
	if _, err := os.Stat(path); err != nil {
		w.file(content)
	}
	return up.File(ctx, path, s)
}

// wantObject fails unless the object has content.
func (k *partedSource) wantObject(w *world, content []byte) {
	w.t.Helper()
	if k.gzip {
		w.wantUnzipped("obj", content, k.input == nil)
	} else {
		w.wantObject("obj", content)
	}
}

// wantNothing fails if anything but objects is left at the service, in the store or in the spool.
func (w *world) wantNothing() {
	w.t.Helper()
	w.wantSaved(0)
	w.wantNoSpool()
	w.wantNoLeftovers()
	w.wantNoUploads()
}

// steady returns a reader that takes a moment for each read, so that the upload begins before the input ends.
func steady(content []byte) io.Reader { return &pausedReader{content, time.Millisecond} }

// calling makes a call at the side, and returns its outcome.
func calling(f func() (*upload.Result, error)) <-chan called {
	ended := make(chan called, 1)
	go func() {
		res, err := f()
		ended <- called{res, err}
	}()
	return ended
}

// refusing answers each request of a kind with a status.
func refusing(op faults.Op, status int) faults.Fault {
	return faults.Fault{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
}

// causes returns the causes of the events of some kinds.
func (w *world) causes(kinds ...upload.EventKind) (causes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if slices.Contains(kinds, e.Kind) {
			causes = append(causes, e.Cause)
		}
	}
	return causes
}

// aboutBucket are the requests about a bucket, which are made once.
const aboutBucket = "bucket-get bucket-permissions notification-list "

// operations returns the kinds of the requests.
func (w *world) operations() string {
	var ops []string
	for _, r := range w.srv.Requests() {
		ops = append(ops, string(r.Op))
	}
	return strings.Join(ops, " ")
}

// TestInParts sends sources in parts, each byte once, and nothing is left. One that ends within its first window has the
// same requests as over one connection. A compressed object has the same bytes as one that is sent over one connection.
func TestInParts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inOne := map[int64]int{0: 0, 1: 0, q - 1: 0, q: 0, q + 1: 0, 2 * q: 0, 4 * mib: 0, 9*mib + 1: 0, 23 * mib: 0}
	for _, test := range []struct {
		*partedSource
		parts    map[int64]int // by the size of the source; 0 is one connection
		warnings int           // of the limit, if there are parts
	}{
		{memoryStream, map[int64]int{
			0: 0, q: 0, q + 1: 0, partedWindow: 0, partedWindow + 1: 2, partedWindow + multipart.MinPart: 2,
			partedWindow + multipart.MinPart + 1: 3, partedLarge: 4,
		}, 1},
		{composedStream, map[int64]int{partedWindow + 1: 2, partedWindow + multipart.MinPart: 2}, 0},
		{zippedStream, map[int64]int{partedLarge: 4}, 1},
		{tightStream, map[int64]int{0: 0, q: 0, partedWindow: 0, partedLarge: 4, spooledLarge: 6}, 1},
		{zippedSpooled, map[int64]int{partedLarge: 4}, 1},
		{smallSpool, inOne, 0},
		{zippedSmallSpool, inOne, 0},
		{zippedFile, map[int64]int{q: 0, 2 * mib: 0, 8*mib + 1: 2, 12 * mib: 3, zippedLarge: 5, 30 * mib: 0}, 0},
	} {
		for size, parts := range test.parts {
			t.Run(fmt.Sprint(test.name, size), func(t *testing.T) {
				t.Parallel()
				content := data(size)
				if size == 30*mib { // compressed, it fits in the first window
					content = make([]byte, size)
				}
				var single *upload.Result
				var trace string
				inBubble(t, nil, func(w *world) {
					var err error
					without := func(o *upload.Options) { o.Parallel = nil }
					if single, err = (&partedSource{input: test.input, gzip: test.gzip, spool: test.spool}).send(w.t.Context(), w, test.uploader(w, without), spec, content); err != nil {
						t.Fatal(err)
					}
					trace = w.trace()
				})
				inBubble(t, nil, func(w *world) {
					res, err := test.send(w.t.Context(), w, test.uploader(w), spec, content)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					if got := w.trace(); parts == 0 && got != trace && (test.spool == 0 || !strings.HasPrefix(got, "start ")) {
						t.Errorf("requests\n%swant\n%s", got, trace)
					}
					if other := single.Object.CRC32C; res.Object.CRC32C != other && (test.input == nil || !test.gzip) {
						t.Errorf("CRC32C %08x, over one connection %08x", res.Object.CRC32C, other)
					}
					want := "get bucket-permissions parts-start" + strings.Repeat(" parts-put", parts) + " parts-list parts-complete get"
					if test.partedSource == composedStream {
						want = strings.Replace(want, "bucket-permissions ", aboutBucket, 1)
						want = strings.TrimSuffix(want, "get") + "compose delete"
					}
					if got := w.operations(); parts > 0 && got != want {
						t.Errorf("requests %s, want %s", got, want)
					}
					if res.BytesSent != res.Object.Size || res.Size != size && (test.spool == 0 || !test.gzip) || res.BytesReread != 0 {
						t.Errorf("Result = %+v", res)
					}
					if (res.Parts != nil) != (parts > 0) || parts > 0 && (res.Parts.Count != parts || res.Object.MD5 != nil) {
						t.Errorf("%+v", res.Parts)
					}
					if parts > 0 && (w.saw(upload.PartDone) != parts || w.saw(upload.Warning) != test.warnings) {
						t.Errorf("%d parts are done, %d warnings", w.saw(upload.PartDone), w.saw(upload.Warning))
					}
					test.wantObject(w, content)
					w.wantNothing()
				})
			})
		}
	}
}

// TestInPartsRates checks that parts are sent at a time, within the memory and the spool, while others are read.
func TestInPartsRates(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(80 * mib)
	for _, k := range (sources{memoryStream, spooledStream, zippedFile}) {
		t.Run(k.name, func(t *testing.T) {
			took := func(n int, memory int64) (took time.Duration) {
				inBubble(t, distant(mib), func(w *world) {
					up := k.uploader(w, func(o *upload.Options) {
						o.Window, o.Memory, o.Parallel = 0, memory, nil
						if n > 1 {
							o.Parallel = &upload.Parts{Connections: n}
						}
						o.Observer = func(upload.Event) {
							if _, size := w.spooled(); size > 48*mib {
								t.Errorf("%d bytes in the spool", size)
							}
						}
					})
					began := time.Now()
					w.done(k.send(w.t.Context(), w, up, spec, content))
					took = time.Since(began)
					k.wantObject(w, content)
					w.wantNothing()
				})
				return took
			}
			one, eight := took(1, 0), took(8, 0)
			if eight*4 > one || k != spooledStream && eight*5 > one {
				t.Errorf("%v with eight connections, %v with one", eight, one)
			}
			if k == zippedFile {
				if little := took(8, 24*mib); little*2 > one || little < one/5 {
					t.Errorf("%v with little memory, %v with one connection", little, one)
				}
			}
		})
	}
}

// multipartPoints are the requests of a source in one multipart upload, with the faults of each.
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

// TestInPartsSurvives checks that a source is uploaded in parts despite each fault of each of its requests.
func TestInPartsSurvives(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	for _, k := range (sources{composedStream, tightStream, zippedFile}) {
		points := multipartPoints
		if k == composedStream {
			points = append(slices.Clone(points),
				point{"bucket", faults.Match{Op: faults.OpBucketGet}, nil},
				point{"compose", faults.Match{Op: faults.OpCompose}, objectFaults},
				point{"delete", faults.Match{Op: faults.OpDelete}, nil},
			)
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			eachFault(t, 3, points, func(w *world, at string, do faults.Action) {
				res, err := k.send(w.t.Context(), w, k.uploader(w), spec, content)
				if err != nil || res.Parts == nil {
					w.t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantFaults()
				k.wantObject(w, content)
				w.wantSaved(0)
				w.wantNoSpool()
				if at != "start" { // a reply that is lost has the only ID
					w.wantNothing()
				}
			})
		})
	}
}

// TestInPartsFails checks that an upload that fails leaves no object. It leaves nothing if no other process has the bytes,
// or none could succeed. Otherwise, it is resumed.
func TestInPartsFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content, broken := data(partedLarge), errors.New("broken")
	damaged := faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: -1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}
	last := refusing(faults.OpPartsPut, 403)
	last.Match.Nth = 4
	sum, absent := upload.Spec{CRC32C: new(uint32(1))}, upload.Spec{IfGenerationMatch: new(int64)}
	streams := sources{memoryStream, composedStream}
	for _, test := range []struct {
		name       string
		lost, kept sources // that leave nothing, and that are resumed
		at         int64   // where the reader fails; 0 if it does not
		spec       upload.Spec
		call       upload.CallOptions
		fault      faults.Fault
		err        error
	}{
		{name: "the reader at once", lost: streams, at: q + 1, err: broken},
		{name: "the reader after the first window", lost: streams, at: partedWindow + 1, err: broken},
		{name: "the reader after a part", lost: sources{memoryStream, composedStream, spooledStream, inSession}, at: 3 * multipart.MinPart, err: broken},
		{name: "a reader that ends in an error", lost: sources{memoryStream, inSession}, at: 3 * multipart.MinPart, err: fmt.Errorf("cut: %w", io.EOF)},
		{name: "the confirmation", lost: sources{memoryStream, composedStream, spooledStream, inSession}, kept: sources{zippedFile},
			call: upload.CallOptions{Confirm: func(context.Context) error { return broken }}, err: broken},
		{name: "the size", lost: streams, call: upload.CallOptions{Size: new(int64(partedLarge - 1))}, err: session.ErrInvalid},
		{name: "a size of more", lost: sources{memoryStream, composedStream, spooledStream, inSession}, call: upload.CallOptions{Size: new(int64(partedLarge + 1))}, err: upload.ErrTruncated},
		{name: "the checksum", lost: sources{memoryStream, composedStream, spooledStream, zippedFile, inSession}, spec: sum, err: session.ErrChecksum},
		{name: "a part", lost: sources{memoryStream, composedStream, spooledStream}, kept: sources{zippedFile}, fault: refusing(faults.OpPartsPut, 403), err: session.ErrPermission},
		{name: "the last part", lost: sources{memoryStream}, kept: sources{spooledStream}, fault: last, err: session.ErrPermission},
		{name: "an outage", lost: streams, kept: sources{spooledStream, zippedFile}, fault: refusing(faults.OpPartsPut, 503), err: session.ErrRetriesExhausted},
		{name: "damaged parts", lost: streams, kept: sources{spooledStream}, fault: damaged, err: session.ErrChecksum},
		{name: "the list", kept: sources{spooledStream}, fault: refusing(faults.OpPartsList, 503), err: session.ErrRetriesExhausted},
		{name: "the completion", lost: streams, kept: sources{spooledStream, zippedFile}, fault: refusing(faults.OpPartsComplete, 403), err: session.ErrPermission},
		{name: "the compose", lost: sources{composedStream}, fault: refusing(faults.OpCompose, 403), err: session.ErrPermission},
		{name: "the precondition", lost: sources{composedStream}, spec: absent, fault: refusing(faults.OpCompose, 412), err: session.ErrProtocol},
	} {
		for _, k := range slices.Concat(test.lost, test.kept) {
			kept := slices.Contains(test.kept, k)
			t.Run(test.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, nil, func(w *world) {
					if test.fault.Times != 0 {
						w.addFaults(test.fault)
					}
					s, source := spec, *k
					s.CRC32C, s.IfGenerationMatch = test.spec.CRC32C, test.spec.IfGenerationMatch
					if test.at > 0 {
						source.input = func(content []byte) io.Reader {
							return io.MultiReader(k.input(content[:test.at]), iotest.ErrReader(test.err))
						}
					}
					res, err := source.send(w.t.Context(), w, withCall(k.uploader(w), test.call), s, content)
					if !errors.Is(err, test.err) || res.Object != nil || res.Resumable != kept || res.Leftover != nil {
						t.Errorf("%v, %+v\n%s", err, res, w.trace())
					}
					w.wantNoObject("obj")
					if k == inSession && !strings.Contains(w.trace(), "cancel") {
						t.Errorf("the session was not canceled:\n%s", w.trace())
					}
					if kept {
						w.srv.ClearFaults()
						if h, err := w.uploader().Query(w.t.Context(), res.ID); err != nil || h.State != upload.SessionOpen || h.Stored > partedLarge+mib {
							t.Errorf("Query: %+v, %v", h, err)
						}
						if again, err := w.uploader().Resume(w.t.Context(), res.ID); err != nil || !again.Resumed || again.Parts == nil && again.BytesSent > 0 {
							t.Errorf("Resume: %+v, %v\n%s", again, err, w.trace())
						}
						k.wantObject(w, content)
					}
					w.wantNothing()
				})
			})
		}
	}
}

// delayed returns a reader of nothing that takes a while.
func delayed(d time.Duration) io.Reader {
	return atEnd(func() { time.Sleep(d) })
}

// atEnd is a reader that calls a function at its end.
type atEnd func()

func (w atEnd) Read([]byte) (int, error) {
	w()
	return 0, io.EOF
}

// TestInPartsOverOneConnection checks when a source is sent over one connection although the caller asks for parts, that
// the reason is reported, and that no byte is lost.
func TestInPartsOverOneConnection(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	sum := md5.Sum(content)
	withMD5, absent := upload.Spec{MD5: sum[:]}, upload.Spec{IfGenerationMatch: new(int64)}
	joined := func(by upload.JoinBy) func(*upload.Options) {
		return func(o *upload.Options) { o.Parallel = o.Parallel.Joined(by) }
	}
	unsaved := func(o *upload.Options) { o.Store = hook(o.Store, failAfter(0, errFull), "Save") }
	memory, file, spool := sources{memoryStream}, sources{zippedFile}, sources{tightStream}
	for _, test := range []struct {
		name string
		of   sources
		why  string
		with func(*upload.Options)
		spec upload.Spec
		size int64     // that the caller expects
		op   faults.Op // is refused
		err  error
	}{
		{name: "no store", of: memory, with: withoutStore, why: "there is no store"},
		{name: "no store", of: file, with: withoutStore, why: "it is not saved"},
		{name: "an MD5", of: sources{memoryStream, composedStream}, spec: withMD5, why: "has no MD5"},
		{name: "an MD5", of: file, spec: withMD5, why: "MD5", err: session.ErrChecksum}, // of the bytes before compression
		{name: "a precondition", of: sources{tightStream, zippedFile}, spec: absent, why: "preconditions"},
		{name: "composed", of: memory, with: joined(upload.ByCompose), why: "a stream is not composed"},
		{name: "composed", of: file, with: joined(upload.ByCompose), why: "a compressed file is not composed"},
		{name: "a short window", of: sources{memoryStream, zippedFile}, with: func(o *upload.Options) { o.Window = int(2 * mib) }, why: "its memory is too small"},
		{name: "little memory", of: memory, with: func(o *upload.Options) { o.Memory = 16 * mib }, why: "its memory is too small"},
		{name: "a small spool", of: spool, with: func(o *upload.Options) { o.Spool.Limit = 14 * mib }, why: "too small for parts"},
		{name: "refused", of: sources{composedStream, tightStream, zippedFile}, op: faults.OpPartsStart, why: "multipart uploads are refused"},
		{name: "not readable", of: sources{memoryStream, zippedFile}, op: faults.OpGet, why: "cannot be read"},
		{name: "not savable", of: sources{memoryStream, composedStream}, with: unsaved, why: "cannot be saved"},
		{name: "too long", of: memory, size: 5 << 40, why: "its parts would hold", err: upload.ErrTruncated},
		{name: "too long", of: file, with: beyond, why: "its parts would hold"},
		{name: "too long", of: spool, with: autoStreams, why: "its parts hold"},
		{name: "slow", of: sources{memoryStream, tightStream}, why: "its first bytes took more than 10s: its source is slow"},
		{name: "requests of a maximum size", of: file, why: "maximum size", with: func(o *upload.Options) {
			o.Parallel, o.ChunkSize = upload.AutoPartsFrom(4, mib, multipart.MinPart), mib
		}},
	} {
		for _, k := range test.of {
			t.Run(test.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
					if test.op != "" {
						w.addFaults(faults.Fault{Match: faults.Match{Op: test.op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
					}
					with, s, source, call := test.with, spec, *k, upload.CallOptions{}
					s.MD5, s.IfGenerationMatch = test.spec.MD5, test.spec.IfGenerationMatch
					if with == nil {
						with = func(*upload.Options) {}
					}
					if test.size > 0 {
						call.Size = &test.size
					}
					if test.name == "slow" {
						source.input = func(content []byte) io.Reader {
							return io.MultiReader(k.input(content[:mib]), delayed(time.Minute), k.input(content[mib:]))
						}
					}
					res, err := source.send(w.t.Context(), w, withCall(k.uploader(w, with), call), s, content)
					if !errors.Is(err, test.err) || res.Parts != nil {
						t.Fatalf("%v, %+v\n%s", err, res, w.trace())
					}
					if err == nil {
						k.wantObject(w, content)
					}
					why, warned := w.causes(upload.Warning, upload.Undivided), w.causes(upload.Warning)
					if len(why) != 1 || !strings.Contains(why[0], test.why) || len(warned) == 1 && !strings.Contains(warned[0], " is sent over one connection: ") {
						t.Errorf("warnings %q, want one with %q", why, test.why)
					}
					w.wantNothing()
				})
			})
		}
	}
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

// killAt kills a process that sends content at a request, see kill. It returns what the next process finds.
func (w *world) killAt(k *partedSource, content []byte, n int64, after bool) (next *world) {
	w.t.Helper()
	if err := os.MkdirAll(w.spoolDir(), 0o700); err != nil { // of the snapshot
		w.t.Fatal(err)
	}
	plain := w.http
	reached, die := w.kill(n, after)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := calling(func() (*upload.Result, error) { return k.send(ctx, w, k.uploader(w), spec, content) })
	<-reached
	time.Sleep(time.Second) // the other parts are sent
	next = w.snapshot()
	next.http = plain
	die()
	cancel()
	<-ended
	return next
}

// TestInPartsKilled kills a process before and after each request. Another process completes a file, and a spooled stream
// whose end was recorded, with another memory, and sends no part again that the service has. Other streams are never
// published, and what they left is removed by the next stream to any object, by Prune, by Cancel and, unless they have a
// spool, by Resume.
func TestInPartsKilled(t *testing.T) {
	t.Parallel()
	skipShort(t)
	var incomplete, resumed atomic.Int64 // of spooled streams
	t.Run("at", func(t *testing.T) {
		for _, test := range []struct {
			*partedSource
			from, to int64 // requests; an upload that the first one starts may not be saved, and is not checked
			size     int64
		}{
			{memoryStream, 3, 9, partedLarge}, {composedStream, 10, 15, partedLarge}, {tightStream, 3, 12, spooledLarge}, {zippedFile, 3, 11, zippedLarge},
		} {
			for n := test.from; n <= test.to; n++ {
				for _, after := range []bool{false, true} {
					if test.spool == 0 && test.input != nil && after != (n%2 == 0) {
						continue
					}
					t.Run(fmt.Sprint(test.name, n, after), func(t *testing.T) {
						t.Parallel()
						inBubbleWithMD5(t, &fakegcs.Options{NoMD5: test.partedSource != zippedFile, Rate: 8 * mib, Latency: 10 * time.Millisecond}, func(w *world) {
							content := data(test.size)
							next := w.killAt(test.partedSource, content, n, after)
							if test.spool > 0 {
								next.moveSpool()
							}
							saved, err := firstOf(next.uploader().Saved(w.t.Context()))
							if err != nil && n > test.from {
								t.Fatal(err)
							}
							up := test.uploader(next, func(o *upload.Options) {
								o.Memory, o.Window = []int64{0, 24 * mib, 64 * mib}[n%3], int((6+n)*mib)
							})
							switch {
							case test.input == nil:
								stored := next.storedParts()
								res, err := test.send(w.t.Context(), next, up, spec, content)
								if err != nil || stored > 0 && (!res.Resumed || res.Parts == nil) || res.BytesSent+stored != res.Object.Size && res.BytesSent > 0 {
									t.Fatalf("%d bytes were stored: %+v, %v\n%s", stored, res, err, w.trace())
								}
								test.wantObject(next, content)
							case test.spool > 0 && !saved.Incomplete:
								resumed.Add(1)
								if res, err := up.Resume(w.t.Context(), saved.ID); err != nil || res.BytesSent > 16*mib {
									t.Errorf("Resume: %+v, %v\n%s", res, err, w.trace())
								}
								test.wantObject(next, content)
							default:
								if test.spool > 0 {
									incomplete.Add(1)
								}
								if saved.ID != "" {
									test.removeKilled(next, up, saved, n%4)
								}
								next.wantNoObject("obj")
							}
							if n > test.from { // the saved upload names the multipart upload
								next.wantNothing()
							}
						})
					})
				}
			}
		}
	})
	if resumed.Load() == 0 || incomplete.Load() == 0 {
		t.Errorf("%d were resumed, %d did not end", resumed.Load(), incomplete.Load())
	}
}

// removeKilled removes in one of four ways what a killed process left of a stream whose bytes are lost.
func (k *partedSource) removeKilled(w *world, up *upload.Uploader, left upload.SavedUpload, way int64) {
	w.t.Helper()
	spooled := k.spool > 0
	if left.ToRemove == spooled || left.Incomplete != spooled || left.Source() != "-" || left.Size != -1 || left.InUse || !spooled && !left.Expires.IsZero() {
		w.t.Errorf("%+v", left)
	}
	if spooled || way == 0 {
		want := map[bool]error{true: upload.ErrIncomplete, false: state.ErrNotFound}[spooled]
		w.fails(want)(up.Resume(w.t.Context(), left.ID))
	}
	switch {
	case way == 1:
		if err := up.Cancel(w.t.Context(), left.ID); err != nil {
			w.t.Errorf("Cancel: %v", err)
		}
	case way == 2 || way == 0 && spooled:
		if p, err := firstOf(up.Prune(w.t.Context(), nil)); err != nil || !p.Deleted || k == memoryStream && p.State != upload.SessionOpen {
			w.t.Errorf("Prune: %+v, %v", p, err)
		}
	case way == 3:
		other := spec
		other.Object = "other"
		w.done(k.send(w.t.Context(), w, k.uploader(w), other, data(partedLarge)))
	}
}
