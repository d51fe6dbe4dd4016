package engine_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/netconn"
)

// fullSocket returns a connection whose peer reads nothing, and the length of its queue.
func fullSocket(t *testing.T) (c *net.TCPConn, queue int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() }) // with the connection that it has not accepted
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c = conn.(*net.TCPConn)
	_ = c.SetWriteBuffer(int(q))
	_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.Write(data(20 * mib))
	queue, _ = netconn.NewSocket(c).Unacknowledged()
	if queue <= 0 || queue >= mib {
		t.Fatalf("the queue has %d bytes", queue)
	}
	return c, queue
}

// TestMeterAsksTheSocket checks that the bytes in the queue of the socket have not arrived, and are at risk, and that those
// before them raise the bound.
func TestMeterAsksTheSocket(t *testing.T) {
	t.Parallel()
	c, queue := fullSocket(t)
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		w.socket, w.uplink.AtRisk = c, new(atrisk.Bound)
		var r *engine.Run
		var mu sync.Mutex
		moved, looks := int64(0), 0
		r = w.run(spec, file(data(6*mib)), engine.TransferOptions{Moved: func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			before := moved
			moved += n
			_, sent, _, _ := r.Wire.Pos.Load()
			if moved == sent {
				return // the end of a request
			}
			looks++
			risk, _, bound := w.uplink.AtRisk.Amounts()
			if moved != sent-queue || before > 0 && (risk != queue+q || bound != atrisk.First+before) {
				t.Errorf("%d bytes arrived of %d with a queue of %d; before, %d had arrived, %d were at risk of %d", moved, sent, queue, before, risk, bound)
			}
		}})
		if _, err := r.Drive(w.t.Context()); err != nil || looks < 3 {
			t.Errorf("%d looks, %v", looks, err)
		}
	})
}
