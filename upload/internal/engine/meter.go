package engine

import (
	"errors"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/internal/lend"
)

// Meter counts the bytes of a request on their way to the network, and those that the peer has
// acknowledged. It reads from another reader.
type Meter struct {
	r       io.Reader
	t       *Transfer
	record  Recorder // nil if this request is not recorded
	session bool     // the service keeps what arrives
	from    int64    // the offset of the first byte
	n       int64    // bytes that were handed to the network
	arrived int64    // of these, those that the peer has acknowledged, or all if the system does not tell
	looked  struct {
		at time.Time
		n  int64
	}
}

// The socket is asked after as many bytes, or as much time, because that takes a system call.
const (
	lookBytes = 1 << 20
	lookTime  = 50 * time.Millisecond
)

// newMeter returns a meter of a request that sends the bytes of r. session reports that the service keeps what
// arrives. The caller must call Close.
func newMeter(r io.Reader, t *Transfer, session bool) *Meter {
	m := &Meter{r: r, t: t, session: session, from: t.Wire.Pos.Sent.Load()}
	m.looked.at = time.Now()
	t.Wire.Pos.Arrived.Store(m.from)
	return m
}

// Meter returns a meter of a request that sends the bytes of r, and that the service keeps as a whole or not at
// all. The caller must call Close.
func (t *Transfer) Meter(r io.Reader) *Meter { return newMeter(r, t, false) }

// look notes what the socket still has of the bytes that were handed to the network.
func (m *Meter) look() {
	if m.n-m.looked.n < lookBytes && time.Since(m.looked.at) < lookTime {
		return
	}
	m.looked.at, m.looked.n = time.Now(), m.n
	queue, known := m.t.Wire.memory.socket.Load().Unacknowledged()
	m.arrive(max(m.n-queue, m.arrived))
	if m.t.Wire.Part == 0 || m.session { // a part that is not complete is no progress
		m.t.Wire.Pos.Arrived.Store(m.from + m.arrived)
	}
	switch {
	case !m.session:
	case known:
		m.t.isSafe(m.from + m.arrived)
		m.t.Risk.Hold(queue + chunk.Granularity)
	default:
		m.t.Risk.HoldUnknown()
	}
}

// arrive records that n bytes have arrived.
func (m *Meter) arrive(n int64) {
	if m.t.Moved != nil && n > m.arrived {
		m.t.Moved(n - m.arrived)
	}
	m.arrived = n
}

// Close ends the count.
func (m *Meter) Close() { m.arrive(m.n) }

// isSafe records that the bytes before offset are no longer at risk.
func (t *Transfer) isSafe(offset int64) {
	t.Risk.Committed(offset - t.safe)
	t.safe = max(t.safe, offset)
}

// flowing is the number of bytes of a request after which it counts as a success of
// the service. It is more than the buffers on the way can hold.
const flowing = 16 << 20

func (m *Meter) Read(p []byte) (int, error) {
	if err := m.t.measurement.next(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	m.add(n)
	return n, err
}

// Lend implements [lend.Reader].
func (m *Meter) Lend(max int) ([]byte, error) {
	r, ok := m.r.(lend.Reader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if err := m.t.measurement.next(); err != nil {
		return nil, err
	}
	p, err := r.Lend(max)
	m.add(len(p))
	return p, err
}

// add counts n bytes, which are read and not yet sent.
func (m *Meter) add(n int) {
	m.look()
	m.t.measurement.add(n)
	q, u := m.t.Wire, m.t.Wire.uplink
	sent := q.Pos.Sent.Add(int64(n))
	u.Tally.Sent.Add(int64(n))
	if u.Place != nil {
		u.Place.Sent(n)
	}
	if m.record != nil {
		m.record.Handed(sent)
	}
	if m.n += int64(n); m.n >= flowing {
		if m.n-int64(n) < flowing {
			q.Retry.Succeeded()
		}
		q.Retry.Budget.Progressed() // the buffers are full, so the service has received bytes
	}
	u.Notes.Flowing()
}
