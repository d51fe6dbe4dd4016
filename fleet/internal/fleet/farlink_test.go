package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"gcsup/fleet/internal/fleet"
)

// farLink dials connections to a server that is far away: what is read arrives late.
type farLink struct {
	delay time.Duration
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
	n, err := c.Conn.Read(p)
	time.Sleep(c.link.delay)
	return n, err
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
	for i := range files {
		w.write(fmt.Sprint("d", i), 0, 0) // no such name ends a group
	}
	q := w.queue()
	w.submit(q)
	if got := w.status(q).Tasks; got != 1 {
		t.Fatalf("%d tasks, want one group", got)
	}
	for i := range files {
		noErr(t, os.Remove(filepath.Join(w.tree, fmt.Sprint("d", i))))
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
