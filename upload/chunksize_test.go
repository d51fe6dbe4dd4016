package upload_test

import (
	"bytes"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestChunkSize checks that the committed offsets of files and streams are at most one
// chunk or window apart.
func TestChunkSize(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const size = 12*mib + 5
	for _, tt := range []struct {
		name     string
		opts     upload.Options
		stream   bool
		requests int // that carry more than the tail
		each     int64
	}{
		{"file, no bound", upload.Options{}, false, 1, 12 * mib},
		{"file", upload.Options{ChunkSize: 2*mib - 1}, false, 6, 2 * mib},
		{"stream", upload.Options{Window: 4 * int(mib), ChunkSize: 2 * mib}, true, 6, 2 * mib},
		{"stream, more than a window", upload.Options{Window: int(mib), ChunkSize: 2 * mib}, true, 12, mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Rate: mib}, func(w *world) {
				var puts []upload.Exchange
				up := w.uploader(func(o *upload.Options) {
					o.ChunkSize, o.Window = tt.opts.ChunkSize, tt.opts.Window
					o.Exchange = func(x upload.Exchange) {
						if x.Op == session.OpPut {
							puts = append(puts, x)
						}
					}
				})
				var err error
				if content := data(size); tt.stream {
					_, err = up.Reader(w.t.Context(), bytes.NewReader(content), spec)
				} else {
					_, err = up.File(w.t.Context(), w.file(content), spec)
				}
				require.NoError(t, err)
				w.wantObject("obj", data(size))
				var largest int64
				for _, x := range puts {
					largest = max(largest, x.Sent)
					if x.Committed != x.Offset+x.Sent {
						t.Errorf("put %d-%d committed %d", x.Offset, x.Offset+x.Sent, x.Committed)
					}
				}
				if len(puts) != tt.requests || largest > tt.each || largest < tt.each/2 {
					t.Errorf("%d requests of at most %d bytes, want %d of %d", len(puts), largest, tt.requests, tt.each)
				}
			})
		})
	}
	inBubble(t, nil, func(w *world) { // a small file
		up := w.uploader(func(o *upload.Options) { o.ChunkSize = mib })
		res, err := up.File(w.t.Context(), w.file(data(3*mib)), spec)
		if err != nil || res.Requests != 5 {
			t.Errorf("%d requests for 3 MiB, want a session with 5: %v", res.Requests, err)
		}
	})
}

// TestChunkSizeCost checks that a further request costs one round trip, and nothing
// else on the network. The table at [upload.Options] has its results.
func TestChunkSizeCost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const size, rate = 64 * mib, 100 * mib
	path := ""
	for _, latency := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond} {
		var unbound time.Duration
		for _, every := range []int64{0, 32 * mib, 16 * mib, 4 * mib, mib} {
			inBubble(t, &fakegcs.Options{Rate: rate, Latency: latency, Discard: true, NoMD5: true}, func(w *world) {
				if path == "" {
					path = w.file(random(size))
				}
				up := w.uploader(func(o *upload.Options) { o.Store, o.ChunkSize = nil, every })
				res, err := up.File(w.t.Context(), path, spec)
				require.NoError(t, err)
				if every == 0 {
					unbound = res.Elapsed
				}
				want := 3 // start, everything up to the tail, the tail
				if every > 0 {
					want = int(2 + size/every)
				}
				extra := res.Elapsed - unbound - time.Duration(want-3)*latency
				if res.Requests != want || extra.Abs() > time.Millisecond {
					t.Errorf("every %d MiB, %v per reply: %d requests, want %d; %v more than a round trip each", every/mib, latency, res.Requests, want, extra)
				}
			})
		}
	}
}
