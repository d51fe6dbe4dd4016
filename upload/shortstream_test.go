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

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

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
	only := point{"", faults.Match{Op: faults.OpInsert}, slices.Concat(objectFaults, body)}
	for _, condition := range []*int64{nil, new(int64)} {
		eachFault(t, 1, []point{only}, func(w *world, _ string, _ faults.Action) {
			content, spec := data(q-5), spec
			spec.IfGenerationMatch = condition
			res, err := w.uploader().Reader(w.t.Context(), pieces(content), spec)
			if err != nil {
				w.t.Fatalf("%v\n%s", err, w.trace())
			}
			w.wantObject("obj", content)
			if strings.Contains(w.trace(), "start") {
				w.t.Errorf("a session was started\n%s", w.trace())
			}
			if o, _ := w.srv.Object("bkt", "obj"); o.Generation != res.Object.Generation {
				w.t.Errorf("generation %d, the Result has %d", o.Generation, res.Object.Generation)
			}
			w.wantFaults()
		})
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
					ended := calling(func() (*upload.Result, error) { return w.uploader().Reader(ctx, r, spec) })
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
						if got := <-ended; !errors.Is(got.err, context.Canceled) {
							t.Errorf("error = %v, want context.Canceled", got.err)
						}
						w.wantNoObject("obj")
						return
					}
					producer.Write(content[900:])
					producer.Close()
					if got := <-ended; got.err != nil {
						t.Errorf("%v\n%s", got.err, w.trace())
					}
					w.wantObject("obj", content)
				})
			})
		}
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
			w.fails(nil)(w.uploader().Bytes(w.t.Context(), []byte("of another writer"), spec))
			return 0, io.EOF
		})
		for _, r := range []io.Reader{late, iotest.ErrReader(errors.New("read"))} {
			w.fails(session.ErrPrecondition)(w.uploader().Reader(w.t.Context(), r, onlyNew))
			w.wantObject("obj", []byte("of another writer"))
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

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

// TestStreamsReturnMemory checks that an upload returns its memory to the Uploader
// for every kind of end.
func TestStreamsReturnMemory(t *testing.T) {
	skipShort(t)
	broken := errors.New("broken")
	refuse := func(op faults.Op) []faults.Fault {
		return []faults.Fault{{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}}}
	}
	hang := []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStall}}}
	lost := []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectGone}}}
	content := data(9 * mib)
	type kind func(ctx context.Context, w *world, up *upload.Uploader, r io.Reader, s upload.Spec) error
	stream := func(ctx context.Context, _ *world, up *upload.Uploader, r io.Reader, s upload.Spec) error {
		_, err := up.Reader(ctx, r, s)
		return err
	}
	file := func(ctx context.Context, w *world, up *upload.Uploader, _ io.Reader, s upload.Spec) error {
		_, err := up.File(ctx, w.file(content), s)
		return err
	}
	written := func(end func(*upload.Writer) error) kind {
		return func(ctx context.Context, w *world, up *upload.Uploader, _ io.Reader, s upload.Spec) error {
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
	all := func() io.Reader { return bytes.NewReader(content) }
	short := func() io.Reader { return bytes.NewReader(content[:100]) }
	failing := func(at int64) func() io.Reader {
		return func() io.Reader { return io.MultiReader(bytes.NewReader(content[:at]), iotest.ErrReader(broken)) }
	}
	for i, c := range []struct {
		name   string
		faults []faults.Fault
		use    kind
		r      func() io.Reader
		call   upload.CallOptions
		spec   upload.Spec
	}{
		{name: "stream", use: stream, r: all},
		{name: "short stream", use: stream, r: short},
		{name: "short stream refused", faults: refuse(faults.OpInsert), use: stream, r: short},
		{name: "stream refused", faults: refuse(faults.OpPut), use: stream, r: all},
		{name: "start refused", faults: refuse(faults.OpStart), use: stream, r: all},
		{name: "stream interrupted", faults: hang, use: stream, r: all},
		{name: "stream lost", faults: lost, use: stream, r: all},
		{name: "reader fails", use: stream, r: failing(3 * mib)},
		{name: "reader fails at once", use: stream, r: failing(0)},
		{name: "not confirmed", use: stream, r: all, call: upload.CallOptions{Confirm: func(context.Context) error { return broken }}},
		{name: "truncated", use: stream, r: all, call: upload.CallOptions{Size: new(10 * mib)}},
		{name: "precondition", use: stream, r: all, spec: upload.Spec{IfGenerationMatch: new(int64(77))}},
		{name: "other checksum", use: stream, r: all, spec: upload.Spec{CRC32C: new(uint32(1))}},
		{name: "file", use: file},
		{name: "file refused", faults: refuse(faults.OpPut), use: file},
		{name: "file interrupted", faults: hang, use: file},
		{name: "file lost", faults: lost, use: file},
		{name: "file interrupted and resumed", faults: hang, use: func(ctx context.Context, w *world, up *upload.Uploader, _ io.Reader, s upload.Spec) error {
			path := w.file(content)
			_, _ = up.File(ctx, path, s)
			_, err := up.File(w.t.Context(), path, s)
			return err
		}},
		{name: "written", use: written((*upload.Writer).Close)},
		{name: "written and aborted", use: written(func(*upload.Writer) error { return broken })},
		{name: "written and refused", faults: refuse(faults.OpFinalize), use: written((*upload.Writer).Close)},
		{name: "written and interrupted", faults: hang, use: written((*upload.Writer).Close)},
		{name: "bytes", use: func(ctx context.Context, _ *world, up *upload.Uploader, _ io.Reader, s upload.Spec) error {
			_, err := up.Bytes(ctx, content, s)
			return err
		}},
	} {
		if c.r == nil {
			c.r = all
		}
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
					s.Gzip, s.IfGenerationMatch, s.CRC32C = zipped, c.spec.IfGenerationMatch, c.spec.CRC32C
					c.call.Window = int(mib)
					err := c.use(ctx, w, withCall(up, c.call), c.r(), s)
					for _, f := range w.srv.FaultReport() {
						if !f.Done {
							t.Errorf("a fault did not act, the error was %v:\n%s", err, w.trace())
						}
					}
					w.srv.ClearFaults()
					w.done(up.Reader(w.t.Context(), &zeroReader{size: 8 * mib}, upload.Spec{Bucket: "bkt", Object: "probe"}))
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
