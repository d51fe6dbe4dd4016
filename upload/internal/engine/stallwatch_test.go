package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session"
)

// TestStallWatch checks that only a request that lags two minutes behind 64
// KiB/s is canceled.
func TestStallWatch(t *testing.T) {
	const rate = 64 << 10
	tests := []struct {
		name string
		use  func(r io.Reader)
		want time.Duration // when it is canceled; 0 if it is not
	}{
		{"no reply at all", func(io.Reader) { time.Sleep(time.Hour) }, 2 * time.Minute},
		{"just fast enough", func(r io.Reader) {
			for range 3600 {
				io.CopyN(io.Discard, r, rate)
				time.Sleep(time.Second)
			}
		}, 0},
		{"half as fast", func(r io.Reader) {
			for range 3600 {
				io.CopyN(io.Discard, r, rate/2)
				time.Sleep(time.Second)
			}
		}, 240 * time.Second},
		{"a pause of 100 s, then fast, then again", func(r io.Reader) {
			for range 10 {
				time.Sleep(100 * time.Second)
				io.CopyN(io.Discard, r, 100*rate)
			}
		}, 0},
		{"everything sent, no reply", func(r io.Reader) {
			io.CopyN(io.Discard, r, 10*rate)
			time.Sleep(time.Hour)
		}, 120 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, w := watchStall(context.Background(), 2*time.Minute, rate)
				var at time.Duration
				context.AfterFunc(ctx, func() {
					if errors.Is(context.Cause(ctx), session.ErrStalled) {
						at = time.Since(start)
					}
				})
				tt.use(w.body(zeroes{}, nil))
				w.stop()
				synctest.Wait()
				if d := at - tt.want; d < -2*time.Second || d > 2*time.Second {
					t.Errorf("canceled after %v, want %v", at, tt.want)
				}
			})
		})
	}
}

// TestStallWatchForgivesTheSource checks that the time of reading the source does not
// count.
func TestStallWatchForgivesTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := watchStall(t.Context(), 2*time.Minute, 64<<10)
		defer w.stop()
		r := w.body(slow{bytes.NewReader(make([]byte, 10)), time.Hour}, nil)
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := context.Cause(ctx); err != nil {
			t.Errorf("a slow source ended the request: %v", err)
		}
	})
}

type slow struct {
	r io.Reader
	d time.Duration
}

func (s slow) Read(p []byte) (int, error) { time.Sleep(s.d); return s.r.Read(p) }
