package upload_test

import (
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

// TestRequestsWhenNothingFails checks which requests are made for each size.
func TestRequestsWhenNothingFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	tests := []struct {
		name string
		size int64
		with func(*upload.Options)
		want string
	}{
		{"empty", 0, nil, "insert  -> 200\n"},
		{"one byte", 1, nil, "insert  -> 200\n"},
		{"8 MiB", 8 * mib, nil, "insert  -> 200\n"},
		{"8 MiB and a byte", 8*mib + 1, nil, "start  -> 200\nput 0-8388607/8388609 -> 200 bytes=0-8388607\nfinalize 8388608-8388608/8388609 -> 200\n"},
		{"a multiple of 256 KiB", 9 * mib, nil, "start  -> 200\nput 0-9175039/9437184 -> 200 bytes=0-9175039\nfinalize 9175040-9437183/9437184 -> 200\n"},
		{"256 KiB and a byte, chunked", q + 1, resumable, "start  -> 200\nput 0-262143/262145 -> 200 bytes=0-262143\nfinalize 262144-262144/262145 -> 200\n"},
		{"512 KiB, chunked", 2 * q, resumable, "start  -> 200\nput 0-262143/524288 -> 200 bytes=0-262143\nfinalize 262144-524287/524288 -> 200\n"},
		{"an odd chunk size is rounded up", 2*q + 1, func(o *upload.Options) { o.ChunkSize = q + 1 }, "start  -> 200\nput 0-524287/524289 -> 200 bytes=0-524287\nfinalize 524288-524288/524289 -> 200\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(tt.size)
				with := []func(*upload.Options){}
				if tt.with != nil {
					with = append(with, tt.with)
				}
				res, err := w.uploader(with...).File(w.t.Context(), w.file(content), spec)
				if err != nil {
					t.Fatal(err)
				}
				w.wantObject("obj", content)
				w.wantSaved(0)
				if got := w.trace(); got != tt.want {
					t.Errorf("requests:\n%swant:\n%s", got, tt.want)
				}
				o, _ := w.srv.Object("bkt", "obj")
				if res.Object == nil || res.Object.Generation != o.Generation || res.Object.Size != tt.size || res.Object.CRC32C != checksum.Update(0, content) {
					t.Errorf("Result.Object = %+v", res.Object)
				}
				if res.BytesSent != tt.size || res.BytesResent != 0 || res.Retries != 0 || res.Resumed || res.Waited != 0 || res.Size != tt.size {
					t.Errorf("Result = %+v", res)
				}
				if res.Requests != len(w.srv.Requests()) {
					t.Errorf("Result.Requests = %d, the server saw %d", res.Requests, len(w.srv.Requests()))
				}
			})
		})
	}
}

// TestFileSurvives checks that a file is uploaded despite each fault, at the
// start, at the first data, in the middle and at the end, also if it is compressed.
func TestFileSurvives(t *testing.T) {
	t.Parallel()
	plain, compressed := data(7*q+12345), text(7*q+12345)
	atEnd := slices.Concat(objectFaults, finalFaults, dataFaults)
	eachFault(t, testsize.Full(1, 3), []point{
		{"start", faults.Match{Op: faults.OpStart}, nil},
		{"first data", faults.Match{Op: faults.OpPut}, dataFaults},
		{"middle", faults.Match{Op: faults.OpPut, From: 4 * q, To: 5 * q}, dataFaults},
		{"end", faults.Match{Op: faults.OpFinalize}, atEnd},
		{"small", faults.Match{Op: faults.OpInsert}, objectFaults},
		{"start, compressed", faults.Match{Op: faults.OpStart}, nil},
		{"middle, compressed", faults.Match{Op: faults.OpPut, From: 2 * q, To: 3 * q}, dataFaults},
		{"end, compressed", faults.Match{Op: faults.OpFinalize}, atEnd},
		{"small, compressed", faults.Match{Op: faults.OpInsert}, objectFaults},
	}, func(w *world, at string, do faults.Action) {
		content, to := plain, spec
		if strings.HasSuffix(at, "compressed") {
			content, to = compressed, zipped
		}
		with := func(o *upload.Options) {
			if o.ChunkSize = 2 * q; to.Gzip {
				o.Window = int(2 * q)
			}
		}
		if strings.HasPrefix(at, "small") {
			with = func(*upload.Options) {}
		}
		res, err := w.uploader(with).File(w.t.Context(), w.file(content), to)
		if err != nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantFile(content, to.Gzip)
		w.wantSaved(0)
		w.wantFaults()
		seen := len(w.srv.Requests())
		if do.Effect == faults.EffectStall {
			seen++ // the server records it when it has ended
		}
		if res.Requests != seen {
			w.t.Errorf("Result.Requests = %d, the server saw %d\n%s", res.Requests, seen, w.trace())
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range w.events {
			if e.Delay >= 60e9 {
				w.t.Errorf("a wait of %v", e.Delay)
			}
		}
	})
}
