package netconn

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// host is a host of a test. What happens to a connection to each of its addresses is in
// fate: it is connected after a time, refused, or never answered.
type host struct {
	addrs  string // separated by spaces
	fate   map[string]time.Duration
	open   atomic.Int32 // connections
	mu     sync.Mutex
	dialed []string
}

const refused = -1

func (h *host) lookup(_ context.Context, _, name string) ([]netip.Addr, error) {
	if name == "empty" {
		return nil, nil
	}
	if name != "host" {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, a := range strings.Fields(h.addrs) {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

func (h *host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	address = strings.TrimSuffix(address, ":443")
	h.mu.Lock()
	h.dialed = append(h.dialed, address)
	h.mu.Unlock()
	fate, answers := h.fate[address]
	if fate == refused {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	if !answers {
		fate = time.Hour
	}
	select {
	case <-time.After(fate):
		h.open.Add(1)
		return &conn{host: h}, nil
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Err: context.Cause(ctx)}
	}
}

// conn is a connection to a host.
type conn struct {
	net.Conn
	host *host
}

func (c *conn) Close() error {
	c.host.open.Add(-1)
	return nil
}

// TestDialer connects to hosts of which some addresses do not answer, and checks how long
// it takes, which addresses are tried, and that no other connection stays open.
func TestDialer(t *testing.T) {
	t.Parallel()
	const rtt = 50 * time.Millisecond
	up := func(addrs ...string) map[string]time.Duration {
		fate := map[string]time.Duration{}
		for _, a := range addrs {
			fate[a] = rtt
		}
		return fate
	}
	for _, test := range []struct {
		name    string
		address string
		addrs   string
		fate    map[string]time.Duration
		want    string // the dialed addresses
		took    time.Duration
		err     error
	}{
		{"one address", "host:443", "10.0.0.1", up("10.0.0.1"), "10.0.0.1", rtt, nil},
		{"all answer", "host:443", "10.0.0.1 10.0.0.2", up("10.0.0.1", "10.0.0.2"), "10.0.0.1", rtt, nil},
		{"the first drops packets", "host:443", "10.0.0.1 10.0.0.2", up("10.0.0.2"), "10.0.0.1 10.0.0.2", nextAddress + rtt, nil},
		{"two drop packets", "host:443", "10.0.0.1 10.0.0.2 10.0.0.3", up("10.0.0.3"), "10.0.0.1 10.0.0.2 10.0.0.3", 3*nextAddress + rtt, nil},
		{"the first refuses", "host:443", "10.0.0.1 10.0.0.2", map[string]time.Duration{"10.0.0.1": refused, "10.0.0.2": rtt}, "10.0.0.1 10.0.0.2", rtt, nil},
		{"a slow one wins", "host:443", "10.0.0.1 10.0.0.2", map[string]time.Duration{"10.0.0.1": time.Second}, "10.0.0.1 10.0.0.2", time.Second, nil},
		{"both connect", "host:443", "10.0.0.1 10.0.0.2", map[string]time.Duration{"10.0.0.1": nextAddress + rtt, "10.0.0.2": rtt}, "10.0.0.1 10.0.0.2", nextAddress + rtt, nil},
		{"no IPv6", "host:443", "2001:db8::1 2001:db8::2 10.0.0.1", up("10.0.0.1"), "[2001:db8::1] 10.0.0.1", nextAddress + rtt, nil},
		{"mapped", "host:443", "::ffff:10.0.0.1", up("10.0.0.1"), "10.0.0.1", rtt, nil},
		{"all drop packets", "host:443", "10.0.0.1 10.0.0.2", nil, "10.0.0.1 10.0.0.2", connectTimeout, context.DeadlineExceeded},
		{"all refuse", "host:443", "10.0.0.1 10.0.0.2", map[string]time.Duration{"10.0.0.1": refused, "10.0.0.2": refused}, "10.0.0.1 10.0.0.2", 0, syscall.ECONNREFUSED},
		{"an IP address", "10.0.0.9:443", "", up("10.0.0.9"), "10.0.0.9", rtt, nil},
		{"an IP address that drops packets", "10.0.0.9:443", "", nil, "10.0.0.9", connectTimeout, context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &host{addrs: test.addrs, fate: test.fate}
				d := &Dialer{lookup: h.lookup, dial: h.dial}
				start := time.Now()
				c, err := d.DialContext(t.Context(), "tcp", test.address)
				if took := time.Since(start); took != test.took || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
					t.Errorf("DialContext: %v after %v, want %v after %v", err, took, test.err, test.took)
				}
				if err == nil {
					_ = c.Close()
				}
				synctest.Wait()
				h.mu.Lock()
				defer h.mu.Unlock()
				if got := strings.Join(h.dialed, " "); got != test.want {
					t.Errorf("dialed %s, want %s", got, test.want)
				}
				if n := h.open.Load(); n != 0 {
					t.Errorf("%d connections stay open", n)
				}
			})
		})
	}
}

// TestDialerError checks the errors for a name that does not exist, which is that of a
// net.Dialer, and for one without addresses.
func TestDialerError(t *testing.T) {
	t.Parallel()
	h := &host{}
	d := &Dialer{lookup: h.lookup, dial: h.dial}
	_, err := d.DialContext(t.Context(), "tcp", "nowhere:443")
	dns, ok := errors.AsType[*net.DNSError](err)
	if !ok || !dns.IsNotFound || err.Error() != "dial tcp: lookup nowhere: no such host" {
		t.Errorf("DialContext: %v", err)
	}
	if _, err = d.DialContext(t.Context(), "tcp", "empty:443"); err == nil || err.Error() != "dial tcp: address empty: no address" {
		t.Errorf("DialContext: %v", err)
	}
}

// TestDialerCanceled checks that a dial ends with its context.
func TestDialerCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{addrs: "10.0.0.1 10.0.0.2"}
		d := &Dialer{lookup: h.lookup, dial: h.dial}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		if _, err := d.DialContext(ctx, "tcp", "host:443"); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("DialContext: %v after %v, want %v after 1 s", err, time.Since(start), context.Canceled)
		}
	})
}

// TestInTurn checks the order of the addresses in four connections.
func TestInTurn(t *testing.T) {
	t.Parallel()
	h := host{addrs: "2001:db8::1 2001:db8::2 10.0.0.1 10.0.0.2 10.0.0.3"}
	for turn, want := range []string{
		"2001:db8::1 10.0.0.1 2001:db8::2 10.0.0.2 10.0.0.3",
		"2001:db8::2 10.0.0.2 2001:db8::1 10.0.0.3 10.0.0.1",
		"2001:db8::1 10.0.0.3 2001:db8::2 10.0.0.1 10.0.0.2",
		"2001:db8::2 10.0.0.1 2001:db8::1 10.0.0.2 10.0.0.3",
	} {
		addrs, _ := h.lookup(t.Context(), "ip", "host")
		var wanted []netip.Addr
		for _, a := range strings.Fields(want) {
			wanted = append(wanted, netip.MustParseAddr(a))
		}
		if got := inTurn(addrs, turn); !slices.Equal(got, wanted) {
			t.Errorf("turn %d: %v, want %s", turn, got, want)
		}
	}
	if got := inTurn(nil, 3); len(got) != 0 {
		t.Errorf("inTurn(nil) = %v", got)
	}
}
