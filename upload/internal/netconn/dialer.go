package netconn

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"gcsup/internal/congestion"
)

const (
	connectTimeout = 30 * time.Second       // for all addresses of a host together
	nextAddress    = 300 * time.Millisecond // before the second address is tried, too; doubles for each further one
)

// A Dialer connects to a host. If the host has several addresses, it begins with a different
// one each time, so that connections are spread over all of them, and one that accepts
// connections but does not work is left. It tries a further address while the ones before
// do not answer, as in RFC 8305: one that drops all packets costs 0.3 s. A [net.Dialer]
// waits for half of its timeout, each time, because it tries the addresses of a family one
// after the other.
type Dialer struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	calls  atomic.Uint32
}

// NewDialer returns a Dialer with the resolver of the system. Connections have the congestion control of a
// name, see package congestion.
func NewDialer(control string) *Dialer {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second, Control: congestion.Control(control)}
	return &Dialer{lookup: net.DefaultResolver.LookupNetIP, dial: dialer.DialContext}
}

// DialConn connects like DialContext. The connection sends the memory of a body.
func (d *Dialer) DialConn(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return New(c), nil
}

// DialContext connects to an address with a host or an IP address.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil || network != "tcp" {
		return d.dial(ctx, network, address) // which reports the error
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return d.dial(ctx, network, address)
	}
	found, err := d.lookup(ctx, "ip", host)
	if err == nil && len(found) == 0 {
		err = &net.AddrError{Err: "no address", Addr: host}
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	addrs := inTurn(found, int(d.calls.Add(1)-1))
	targets := make([]string, len(addrs))
	for i, a := range addrs {
		targets[i] = net.JoinHostPort(a.String(), port)
	}
	return d.race(ctx, network, targets)
}

// attempt is the outcome of a dial.
type attempt struct {
	conn net.Conn
	err  error
}

// race dials one address after the other until one is connected. It does not wait for an
// attempt that takes long before it makes the next one. If all fail, the error is that of
// the first one that failed.
func (d *Dialer) race(ctx context.Context, network string, targets []string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the attempts that are no longer needed
	ended := make(chan attempt)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var first error
	wait, running := nextAddress, 0
	for started := 0; started < len(targets) || running > 0; {
		var next <-chan time.Time
		if started < len(targets) {
			next = timer.C
		}
		select {
		case <-next:
			target := targets[started]
			go func() {
				conn, err := d.dial(ctx, network, target)
				ended <- attempt{conn, err}
			}()
			started++
			running++
			timer.Reset(wait)
			wait *= 2
		case a := <-ended:
			running--
			if a.err == nil {
				go closeOthers(ended, running)
				return a.conn, nil
			}
			first = cmp.Or(first, a.err)
			timer.Reset(0) // the next address need not wait
		}
	}
	return nil, first
}

// closeOthers closes what the remaining attempts connect.
func closeOthers(ended <-chan attempt, n int) {
	for range n {
		if a := <-ended; a.err == nil {
			_ = a.conn.Close()
		}
	}
}

// inTurn orders the addresses of a host: the families alternate, the first one stays first,
// and each begins with another of its addresses if turn is one more.
func inTurn(addrs []netip.Addr, turn int) []netip.Addr {
	var families [2][]netip.Addr // the first is that of the first address
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	for _, a := range addrs {
		other := 0
		if a.Is4() != addrs[0].Is4() {
			other = 1
		}
		families[other] = append(families[other], a)
	}
	ordered := make([]netip.Addr, 0, len(addrs))
	for i := range addrs {
		for _, family := range families {
			if i < len(family) {
				ordered = append(ordered, family[(i+turn)%len(family)])
			}
		}
	}
	return ordered
}
