package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"gcsup/chunk"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// smallWindow divides a short stream into many parts.
func smallWindow(o *upload.Options) { o.Window = int(2 * q) }

// TestReaderSizes checks streams of every length near the boundaries, for any sizes of the reads: one of at most 256 KiB
// is sent in one request, and only the last request of a longer one has the total.
func TestReaderSizes(t *testing.T) {
	t.Parallel()
	for name, reader := range map[string]func([]byte) io.Reader{
		"pieces":  pieces,
		"half":    func(b []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(b)) },
		"dataerr": func(b []byte) io.Reader { return iotest.DataErrReader(bytes.NewReader(b)) },
	} {
		for _, size := range []int64{0, 1, 1000, q - 1, q, q + 1, 2*q - 1, 2 * q, 2*q + 1, 4 * q, 5*q + 7} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					content := data(size)
					res, err := w.uploader(smallWindow).Reader(w.t.Context(), reader(content), spec)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
					w.wantSaved(0)
					if res.Size != size || res.Object.Size != size || res.Object.CRC32C != checksum.Update(0, content) || res.BytesSent != size {
						t.Errorf("Result = %+v", res)
					}
					if one := res.Requests == 1 && strings.HasPrefix(w.trace(), "insert"); one != (size <= q) {
						t.Errorf("requests\n%s", w.trace())
					}
					for _, line := range strings.Split(strings.TrimSpace(w.trace()), "\n")[1:] {
						last := strings.HasPrefix(line, "finalize") || strings.HasPrefix(line, "query */0")
						if unknown := strings.Contains(line, "/*"); unknown == last {
							t.Errorf("wrong total in %q\n%s", line, w.trace())
						}
					}
				})
			})
		}
	}
}

// TestReaderSurvives is TestFileSurvives for a stream. A stream survives the loss of
// its session only while all its bytes are in memory.
func TestReaderSurvives(t *testing.T) {
	t.Parallel()
	content := data(7*q + 12345)
	eachFault(t, testsize.Full(1, 3), []point{
		{"start", faults.Match{Op: faults.OpStart}, nil},
		{"first data", faults.Match{Op: faults.OpPut}, dataFaults},
		{"middle", faults.Match{Op: faults.OpPut, From: 4 * q, To: 5 * q}, dataFaults},
		{"end", faults.Match{Op: faults.OpFinalize}, slices.Concat(finalFaults, dataFaults)},
	}, func(w *world, at string, do faults.Action) {
		_, err := w.uploader(smallWindow).Reader(w.t.Context(), pieces(content), spec)
		lost := do.Effect == faults.EffectGone || do.Effect == faults.EffectNotFound
		if lost && at != "first data" {
			// The first window was released, and cannot be read again.
			if !errors.Is(err, session.ErrSessionLost) {
				w.t.Errorf("error = %v, want ErrSessionLost", err)
			}
			w.wantNoObject("obj")
			return
		}
		if err != nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
	})
}

// TestReaderThatFails checks that a stream that fails makes no object, at any offset, and no request within 256 KiB.
func TestReaderThatFails(t *testing.T) {
	broken := errors.New("the pipe broke")
	for _, size := range []int64{0, 1, q, 2 * q, 2*q + 1, 5 * q} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				r := io.MultiReader(bytes.NewReader(data(size)), iotest.ErrReader(broken))
				res, err := w.uploader(smallWindow).Reader(w.t.Context(), r, spec)
				if !errors.Is(err, broken) || !errors.Is(err, chunk.ErrRead) {
					t.Errorf("error = %v, want it to wrap the reader's and chunk.ErrRead", err)
				}
				if res == nil || res.Object != nil || res.Resumable {
					t.Errorf("Result = %+v", res)
				}
				w.wantNoObject("obj")
				if size <= q && w.trace() != "" {
					t.Errorf("requests\n%s", w.trace())
				}
			})
		})
	}
}
