package connlimit_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs/internal/connlimit"
)

func TestRates(t *testing.T) {
	const size = 1 << 20
	for _, test := range []struct {
		name        string
		rate, total int64
		addrs       []string
		want        time.Duration // until all connections have passed size bytes
	}{
		{"rate", size, 0, []string{"a", "b", "c"}, time.Second},
		{"total", 0, size, []string{"a", "b", "c"}, 3 * time.Second},
		{"both", size / 4, size, []string{"a", "b"}, 4 * time.Second},
		{"one connection", size, 0, []string{"a", "a"}, 2 * time.Second},
	} {
		for _, in := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, start := connlimit.New(test.rate, test.total), time.Now()
					var done sync.WaitGroup
					for _, addr := range test.addrs {
						c := l.Connect(addr)
						done.Go(func() {
							defer c.Disconnect()
							if in {
								for left := size; left > 0; left -= c.Step() {
									c.In(t.Context(), min(left, c.Step()))
								}
								return
							}
							var out bytes.Buffer
							if n, err := c.Writer(t.Context(), &out).Write(make([]byte, size)); n != size || err != nil || out.Len() != size {
								t.Errorf("Write = %d, %v, passed %d", n, err, out.Len())
							}
						})
					}
					done.Wait()
					if took := time.Since(start).Round(100 * time.Millisecond); took != test.want {
						t.Errorf("took %v, want %v", took, test.want)
					}
				})
			})
		}
	}
}

func TestNoLimit(t *testing.T) {
	c := connlimit.New(0, 0).Connect("a")
	if c != nil {
		t.Fatal("a connection is limited without a rate")
	}
	defer c.Disconnect()
	var out strings.Builder
	if w := c.Writer(t.Context(), &out); w != &out {
		t.Error("the writer of an unlimited connection is not the one given")
	}
}

func TestContextEndsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := connlimit.New(1, 0).Connect("a")
		defer c.Disconnect()
		start := time.Now()
		if c.In(ctx, 3600); time.Since(start) != time.Second {
			t.Errorf("waited %v, want the second of the context", time.Since(start))
		}
	})
}
