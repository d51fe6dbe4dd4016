package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
	"gcsup/upload"
)

// farLink dials connections to a server that is far away: what is read arrives late. After a cut, all bytes are lost.
type farLink struct {
	delay time.Duration
	cut   atomic.Bool
}

func (l *farLink) Dial(network, addr string) (net.Conn, error) {
	c, err := net.Dial(network, addr)
	return farConn{c, l}, err
}

type farConn struct {
	net.Conn
	link *farLink
}

func (c farConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		time.Sleep(c.link.delay)
		if err != nil || !c.link.cut.Load() {
			return n, err
		}
	}
}

func (c farConn) Write(p []byte) (int, error) {
	if c.link.cut.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// queueOver opens the queue over a link.
func (w *world) queueOver(l *farLink) *fleet.Queue {
	w.t.Helper()
	nc := must(nats.Connect(w.nats.URL(), nats.Token(natsToken), nats.SetCustomDialer(l)))
	w.t.Cleanup(nc.Close)
	return must(fleet.OpenQueue(w.t.Context(), nc, fleet.QueueOptions{}))
}

// TestEndOfGroupFarAway lets all files of a group fail at a worker whose NATS server is so far away that the dead letters
// need more than settleTimeout. It writes them once.
func TestEndOfGroupFarAway(t *testing.T) {
	t.Parallel()
	const files = 600
	w := newWorld(t, nil)
	w.fill("d%d", files, 0) // no such name ends a group
	q := w.queue()
	w.submit(q)
	if got := w.status(q).Tasks; got != 1 {
		t.Fatalf("%d tasks, want one group", got)
	}
	for i := range files {
		require.NoError(t, os.Remove(filepath.Join(w.tree, fmt.Sprint("d", i))))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	far := w.worker(w.queueOver(&farLink{delay: 80 * time.Millisecond}), "far", func(o *fleet.WorkerOptions) { o.MaxFailures = 1 })
	began := time.Now()
	if err := far.Run(ctx); !errors.Is(err, fleet.ErrFilesFailed) {
		t.Errorf("the worker ends with %v, want ErrFilesFailed", err)
	}
	t.Logf("took %v", time.Since(began))
	if got := w.letters(q); len(got) != files {
		t.Errorf("%d dead letters, want %d", len(got), files)
	}
}

// TestEndsInTime stops a worker that cannot reach NATS when it has finished a file, and one of which a file does not answer.
func TestEndsInTime(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"NATS", "file"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.write("a", 1000, 1)
			w.submit(w.queue())
			link := new(farLink)
			stands, release := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(release) })
			worker := w.worker(w.queueOver(link), "a", func(o *fleet.WorkerOptions) {
				o.UntilEmpty = false
				if name == "file" {
					o.ContentType = func(string) string {
						close(stands)
						<-release
						return ""
					}
					return
				}
				o.Upload.Observer = func(e upload.Event) {
					if e.Kind == upload.Done {
						link.cut.Store(true)
						close(stands)
					}
				}
			})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- worker.Run(ctx) }()
			<-stands
			stop()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(fleet.EndsWithin + 2*time.Second):
				t.Fatalf("the worker has not ended %v after it was stopped", fleet.EndsWithin+2*time.Second)
			}
		})
	}
}
