package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// TestShortStreams checks that a stream of at most 256 KiB is sent in one request,
// for any sizes of the reads.
func TestShortStreams(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 1000, q - 1, q, q + 1} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"plain": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader, "dataerr": iotest.DataErrReader,
		} {
			t.Run(fmt.Sprint(size, " ", name), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					content := data(size)
					res, err := w.uploader().Reader(w.t.Context(), wrap(bytes.NewReader(content)), spec)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
					if one := res.Requests == 1 && strings.HasPrefix(w.trace(), "insert"); one != (size <= q) {
						t.Errorf("requests\n%s", w.trace())
					}
					if res.Size != size || res.BytesSent != size {
						t.Errorf("Result = %+v", res)
					}
				})
			})
		}
	}
}

// TestShortStreamSurvives checks that a short stream is uploaded despite each fault
// of its only request.
func TestShortStreamSurvives(t *testing.T) {
	t.Parallel()
	skipShort(t)
	body := []fault{
		{"cut at once", faults.Fault{Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 1}}},
		{"cut in the middle", faults.Fault{Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q / 2}}},
		{"stalled body", faults.Fault{Do: faults.Action{Effect: faults.EffectStallBody, Bytes: q / 2}}},
		{"503 after half", faults.Fault{Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: q / 2}}},
	}
	for _, onlyNew := range []bool{false, true} {
		for _, f := range slices.Concat(everyFault, objectFaults, body) {
			t.Run(fmt.Sprint(f.name, " ", onlyNew), func(t *testing.T) {
				f.plan.Match = faults.Match{Op: faults.OpInsert}
				inBubble(t, &fakegcs.Options{Faults: []faults.Fault{f.plan}}, func(w *world) {
					content, spec := data(q-5), spec
					if onlyNew {
						spec.IfGenerationMatch = new(int64)
					}
					res, err := w.uploader().Reader(w.t.Context(), pieces(content), spec)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
					if strings.Contains(w.trace(), "start") {
						t.Errorf("a session was started\n%s", w.trace())
					}
					if o, _ := w.srv.Object("bkt", "obj"); o.Generation != res.Object.Generation {
						t.Errorf("generation %d, the Result has %d", o.Generation, res.Object.Generation)
					}
					w.wantFaults()
				})
			})
		}
	}
}

// TestShortStreamThatEndsLate checks that an upload waits for a slow producer of
// few bytes, opens no session meanwhile, and can be canceled.
func TestShortStreamThatEndsLate(t *testing.T) {
	for _, canceled := range []bool{false, true} {
		for _, size := range []int64{1000, q + 1000} {
			t.Run(fmt.Sprint(canceled, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					ctx, cancel := context.WithCancel(w.t.Context())
					defer cancel()
					r, producer := io.Pipe()
					ended := make(chan error, 1)
					go func() {
						_, err := w.uploader().Reader(ctx, r, spec)
						ended <- err
					}()
					content := data(size)
					producer.Write(content[:900])
					time.Sleep(5 * time.Hour)
					if n := len(w.srv.Requests()); n != 0 {
						t.Errorf("%d requests before the end of the stream is known", n)
					}
					if canceled {
						cancel()
						synctest.Wait()
						producer.CloseWithError(errors.New("canceled"))
						if err := <-ended; !errors.Is(err, context.Canceled) {
							t.Errorf("error = %v, want context.Canceled", err)
						}
						w.wantNoObject("obj")
						return
					}
					producer.Write(content[900:])
					producer.Close()
					if err := <-ended; err != nil {
						t.Errorf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
				})
			})
		}
	}
}

// TestShortStreamThatFails checks that no request is made for a stream whose reader
// fails within 256 KiB.
func TestShortStreamThatFails(t *testing.T) {
	for _, size := range []int64{0, 1, q} {
		inBubble(t, nil, func(w *world) {
			r := io.MultiReader(bytes.NewReader(data(size)), iotest.ErrReader(io.ErrUnexpectedEOF))
			if _, err := w.uploader().Reader(w.t.Context(), r, spec); !errors.Is(err, chunk.ErrRead) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes: error = %v, want ErrRead", size, err)
			}
			if w.trace() != "" {
				t.Errorf("%d bytes: requests\n%s", size, w.trace())
			}
		})
	}
}

// TestShortStreamPrecondition checks that a short stream is not read if its
// precondition does not hold, and makes no object if the precondition fails later.
func TestShortStreamPrecondition(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		onlyNew := spec
		onlyNew.IfGenerationMatch = new(int64)
		late := readerFunc(func([]byte) (int, error) {
			// Another client writes the object after the precondition was checked.
			if _, err := w.uploader().Bytes(w.t.Context(), []byte("of another writer"), spec); err != nil {
				t.Error(err)
			}
			return 0, io.EOF
		})
		for _, r := range []io.Reader{late, iotest.ErrReader(errors.New("read"))} {
			if _, err := w.uploader().Reader(w.t.Context(), r, onlyNew); !errors.Is(err, session.ErrPrecondition) {
				t.Errorf("error = %v, want ErrPrecondition", err)
			}
			w.wantObject("obj", []byte("of another writer"))
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestStreamsShareMemory checks that streams which the service does not answer read
// no more than the memory of the Uploader.
func TestStreamsShareMemory(t *testing.T) {
	skipShort(t)
	t.Parallel()
	stall := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectStall}}
	inBubble(t, &fakegcs.Options{Faults: []faults.Fault{stall}, Latency: 20 * time.Millisecond}, func(w *world) {
		const streams, memory = 50, 150 * mib
		up := w.uploader(func(o *upload.Options) { o.Memory = memory })
		ctx, cancel := context.WithCancel(w.t.Context())
		sources, ended := make([]*zeroReader, streams), make(chan error, streams)
		for i := range sources {
			sources[i] = &zeroReader{size: 1 << 40}
			go func() {
				_, err := up.Reader(ctx, sources[i], upload.Spec{Bucket: "bkt", Object: fmt.Sprint("o", i)})
				ended <- err
			}()
		}
		time.Sleep(time.Minute)
		var read int64
		for _, s := range sources {
			read += s.read.Load()
		}
		if read > memory+2*streams || read < memory*3/4 {
			t.Errorf("%d bytes are in memory, want at most %d", read, int64(memory))
		}
		cancel()
		for range streams {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v", err)
			}
		}
	})
}

// zeroReader returns size zeros.
type zeroReader struct {
	size int64
	read atomic.Int64
}

func (z *zeroReader) Read(p []byte) (int, error) {
	n := min(int64(len(p)), z.size-z.read.Load())
	if n == 0 {
		return 0, io.EOF
	}
	clear(p[:n])
	z.read.Add(n)
	return int(n), nil
}

// TestEarlyStreamShortensItsRequests checks that the requests of a stream become
// shorter when other streams start: its share is 3.5 MiB, and one request carries all
// of it if the service is slow.
func TestEarlyStreamShortensItsRequests(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, &fakegcs.Options{Discard: true, NoMD5: true, Latency: time.Second}, func(w *world) {
		up := w.uploader(func(o *upload.Options) { o.Memory = 32 * mib })
		ended := make(chan error)
		start := func(name string, size int64) {
			go func() {
				_, err := up.Reader(w.t.Context(), &zeroReader{size: size}, upload.Spec{Bucket: "bkt", Object: name})
				ended <- err
			}()
		}
		start("early", 60*mib)
		time.Sleep(1500 * time.Millisecond) // the first part is sent
		for i := range 7 {
			start(fmt.Sprint("late", i), 40*mib)
		}
		for range 8 {
			if err := <-ended; err != nil {
				t.Errorf("%v", err)
			}
		}
		var sizes []int64
		for _, r := range w.srv.Requests() {
			if r.Op == faults.OpPut && r.Object == "early" {
				sizes = append(sizes, r.Received/mib)
			}
		}
		if len(sizes) < 10 || sizes[0] != 14 || sizes[1] != 14 || slices.Max(sizes[2:]) > 3 {
			t.Errorf("the requests of the early stream carry %v MiB, want 14, 14, and then at most 3", sizes)
		}
	})
}

// TestStuckStreamBlocksNoOther checks that streams continue while another one, which
// has taken all memory, waits for the service.
func TestStuckStreamBlocksNoOther(t *testing.T) {
	t.Parallel()
	skipShort(t)
	down := faults.Fault{Match: faults.Match{Op: faults.OpPut, Object: "stuck"}, Times: -1, Do: faults.Action{Effect: faults.EffectStall}}
	inBubble(t, &fakegcs.Options{Faults: []faults.Fault{down}, Latency: 20 * time.Millisecond}, func(w *world) {
		up := w.uploader(func(o *upload.Options) { o.Memory = 8 * mib })
		ctx, cancel := context.WithCancel(w.t.Context())
		stuck := &zeroReader{size: 1 << 40}
		ended := make(chan error, 1)
		go func() {
			_, err := up.Reader(ctx, stuck, upload.Spec{Bucket: "bkt", Object: "stuck"})
			ended <- err
		}()
		time.Sleep(time.Second)
		if stuck.read.Load() < 7*mib {
			t.Errorf("the stuck stream has read %d bytes", stuck.read.Load())
		}
		began := time.Now()
		for i := range 3 {
			content := data(10 * mib)
			if _, err := up.Reader(w.t.Context(), bytes.NewReader(content), upload.Spec{Bucket: "bkt", Object: fmt.Sprint("o", i)}); err != nil {
				t.Fatal(err)
			}
			w.wantObject(fmt.Sprint("o", i), content)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("three streams took %v", took)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
	})
}

// TestStreamsReturnMemory checks that an upload returns its memory to the Uploader
// for every kind of end.
func TestStreamsReturnMemory(t *testing.T) {
	skipShort(t)
	broken := errors.New("broken")
	refuse := func(op faults.Op) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}}
	}
	hang := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStall}}
	lost := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectGone}}
	content := data(9 * mib)
	type call struct {
		name   string
		faults []faults.Fault
		use    func(ctx context.Context, w *world, up *upload.Uploader, s upload.Spec) error
	}
	stream := func(size int64) func(context.Context, *world, *upload.Uploader, upload.Spec) error {
		return func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			_, err := up.Reader(ctx, bytes.NewReader(content[:size]), s)
			return err
		}
	}
	file := func(ctx context.Context, w *world, up *upload.Uploader, s upload.Spec) error {
		_, err := up.File(ctx, w.file(content), s)
		return err
	}
	written := func(end func(*upload.Writer) error) func(context.Context, *world, *upload.Uploader, upload.Spec) error {
		return func(ctx context.Context, w *world, up *upload.Uploader, s upload.Spec) error {
			f, err := os.Open(w.file(content))
			if err != nil {
				return err
			}
			defer f.Close()
			out := up.NewWriter(ctx, s)
			defer out.Abort()
			if _, err := out.ReadFrom(f); err != nil {
				return err
			}
			if err := writeAll(out, content[:4*mib], 1<<20); err != nil {
				return err
			}
			return end(out)
		}
	}
	for i, c := range []call{
		{"stream", nil, stream(9 * mib)},
		{"short stream", nil, stream(100)},
		{"short stream refused", []faults.Fault{refuse(faults.OpInsert)}, stream(100)},
		{"stream refused", []faults.Fault{refuse(faults.OpPut)}, stream(9 * mib)},
		{"start refused", []faults.Fault{refuse(faults.OpStart)}, stream(9 * mib)},
		{"stream interrupted", []faults.Fault{hang}, stream(9 * mib)},
		{"stream lost", []faults.Fault{lost}, stream(9 * mib)},
		{"file", nil, file},
		{"file refused", []faults.Fault{refuse(faults.OpPut)}, file},
		{"file interrupted", []faults.Fault{hang}, file},
		{"file lost", []faults.Fault{lost}, file},
		{"file interrupted and resumed", []faults.Fault{hang}, func(ctx context.Context, w *world, up *upload.Uploader, s upload.Spec) error {
			path := w.file(content)
			_, _ = up.File(ctx, path, s)
			_, err := up.File(w.t.Context(), path, s)
			return err
		}},
		{"reader fails", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			_, err := up.Reader(ctx, io.MultiReader(bytes.NewReader(content[:3*mib]), errReader{broken}), s)
			return err
		}},
		{"reader fails at once", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			_, err := up.Reader(ctx, errReader{broken}, s)
			return err
		}},
		{"not confirmed", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			up = withCall(up, upload.CallOptions{Confirm: func(context.Context) error { return broken }})
			_, err := up.Reader(ctx, bytes.NewReader(content), s)
			return err
		}},
		{"truncated", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			_, err := withCall(up, upload.CallOptions{Size: new(10 * mib)}).Reader(ctx, bytes.NewReader(content), s)
			return err
		}},
		{"precondition", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			s.IfGenerationMatch = new(int64(77))
			_, err := up.Reader(ctx, bytes.NewReader(content), s)
			return err
		}},
		{"other checksum", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			s.CRC32C = new(uint32(1))
			_, err := up.Reader(ctx, bytes.NewReader(content), s)
			return err
		}},
		{"written", nil, written((*upload.Writer).Close)},
		{"written and aborted", nil, written(func(*upload.Writer) error { return broken })},
		{"written and refused", []faults.Fault{refuse(faults.OpFinalize)}, written((*upload.Writer).Close)},
		{"written and interrupted", []faults.Fault{hang}, written((*upload.Writer).Close)},
		{"bytes", nil, func(ctx context.Context, _ *world, up *upload.Uploader, s upload.Spec) error {
			_, err := up.Bytes(ctx, content, s)
			return err
		}},
	} {
		for _, zipped := range []bool{false, true} {
			if testsize.Full(0, 1) == 1 && zipped != (i%2 == 0) {
				continue
			}
			t.Run(fmt.Sprint(c.name, zipped), func(t *testing.T) {
				inBubble(t, &fakegcs.Options{Discard: true, NoMD5: true, Latency: 20 * time.Millisecond}, func(w *world) {
					up := w.uploader(func(o *upload.Options) { o.Memory = 8 * mib })
					w.addFaults(c.faults...)
					ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
					defer cancel()
					s := spec
					s.Gzip = zipped
					err := c.use(ctx, w, withCall(up, upload.CallOptions{Window: int(mib)}), s)
					for _, f := range w.srv.FaultReport() {
						if !f.Done {
							t.Errorf("a fault did not act, the error was %v:\n%s", err, w.trace())
						}
					}
					w.srv.ClearFaults()
					if _, err := up.Reader(w.t.Context(), &zeroReader{size: 8 * mib}, upload.Spec{Bucket: "bkt", Object: "probe"}); err != nil {
						t.Fatal(err)
					}
					var sizes []int64
					for _, r := range w.srv.Requests() {
						if r.Op == faults.OpPut && r.Object == "probe" {
							sizes = append(sizes, r.Received)
						}
					}
					if all := 7 * mib; len(sizes) < 2 || sizes[0] != all/2 || sizes[1] != all/2 {
						t.Errorf("the requests of the next stream carry %v bytes, want %d each: not all memory was returned", sizes, all/2)
					}
				})
			})
		}
	}
}
