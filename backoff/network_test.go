package backoff_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/internal/require"
)

// TestNetworkErrors checks the errors that a test cannot provoke, or only by
// waiting.
func TestNetworkErrors(t *testing.T) {
	notFound := backoff.Permanent
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		notFound = backoff.Transient
	}
	inURL := func(err error) error { return &url.Error{Op: "Put", URL: "https://example.com", Err: err} }
	tests := []struct {
		name string
		err  error
		want backoff.Verdict
	}{
		{"nil", nil, backoff.Permanent},
		{"unknown", errors.New("something"), backoff.Permanent},
		{"EOF", io.EOF, backoff.Transient},
		{"EOF in a URL error", inURL(io.EOF), backoff.Transient},
		{"unexpected EOF", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), backoff.Transient},
		{"closed pipe", io.ErrClosedPipe, backoff.Transient},
		{"closed connection", inURL(net.ErrClosed), backoff.Transient},
		{"deadline of a connection", inURL(os.ErrDeadlineExceeded), backoff.Transient},
		{"deadline of an attempt", inURL(context.DeadlineExceeded), backoff.Transient},
		{"deadline, two levels deep", inURL(fmt.Errorf("reading: %w", context.DeadlineExceeded)), backoff.Transient},
		{"deadline, joined", errors.Join(errors.New("cut"), os.ErrDeadlineExceeded), backoff.Transient},
		{"canceled", inURL(context.Canceled), backoff.Permanent},
		{"canceled and reset", errors.Join(io.EOF, context.Canceled), backoff.Permanent},
		{"DNS, temporary", inURL(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}), backoff.Transient},
		{"DNS, timeout", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, backoff.Transient},
		{"DNS, no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, notFound},
		{"DNS, other", &net.DNSError{Err: "cannot unmarshal DNS message"}, backoff.Permanent},
		{"idle connection", inURL(errors.New("http: server closed idle connection")), backoff.Transient},
		{"disk", &os.PathError{Op: "read", Path: "x", Err: os.ErrPermission}, backoff.Permanent},
		{"no file descriptor left", inURL(&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}), backoff.Transient},
		{"no file left in the system", &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}, backoff.Transient},
		{"no buffer space", &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ENOBUFS)}, backoff.Transient},
		{"no memory", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENOMEM)}, backoff.Transient},
		{"TLS, damaged length of a record", inURL(tls.RecordHeaderError{Msg: "oversized record received with length 20527"}), backoff.Transient},
		{"TLS, alert for a damaged record", &net.OpError{Op: "remote error", Err: alert("tls: bad record MAC")}, backoff.Transient},
		{"TLS, alert for a certificate", &net.OpError{Op: "remote error", Err: alert("tls: unknown certificate authority")}, backoff.Permanent},
		{"text of an alert elsewhere", errors.New("tls: bad record MAC"), backoff.Permanent},
		{"TLS, not a TLS server", inURL(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), backoff.Permanent},
	}
	for _, test := range tests {
		if got := backoff.Network(test.err); got != test.want {
			t.Errorf("%s: Network(%v) = %v, want %v", test.name, test.err, got, test.want)
		}
	}
}

// alert stands for the unexported type of crypto/tls.
type alert string

func (a alert) Error() string { return string(a) }

// TestProxyRefusals checks a CONNECT proxy's refusals, with CheckProxy and with
// only the text that net/http keeps.
func TestProxyRefusals(t *testing.T) {
	var code int
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			t.Errorf("%s, want CONNECT", r.Method)
		}
		w.WriteHeader(code)
	}))
	defer proxy.Close()
	proxyURL, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	for _, test := range []struct {
		code int
		want backoff.Verdict
	}{
		{403, backoff.Permanent}, {407, backoff.Permanent}, {429, backoff.Transient},
		{500, backoff.Transient}, {502, backoff.Transient}, {503, backoff.Transient}, {504, backoff.Transient},
	} {
		for _, checked := range []bool{false, true} {
			transport := &http.Transport{Proxy: http.ProxyURL(proxyURL)}
			if checked {
				transport.OnProxyConnectResponse = backoff.CheckProxy
			}
			code = test.code
			_, err := (&http.Client{Transport: transport}).Get("https://storage.example")
			if got := backoff.Network(err); got != test.want {
				t.Errorf("%d: Network(%v) = %v, want %v", code, err, got, test.want)
			}
			if got := backoff.ProxyStatus(err); got != code {
				t.Errorf("ProxyStatus(%v) = %d, want %d", err, got, code)
			}
			if checked && !strings.Contains(err.Error(), "proxy "+proxy.URL+" answered CONNECT with ") {
				t.Errorf("%v: want the proxy and its reply", err)
			}
		}
	}
	if got := backoff.ProxyStatus(io.EOF); got != 0 {
		t.Errorf("ProxyStatus(EOF) = %d, want 0", got)
	}
}

// TestDamagedTLSRecord checks a record in which a bit was flipped on the way
// from the server.
func TestDamagedTLSRecord(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 1000))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &flipping{Conn: conn}, err
	}
	defer transport.CloseIdleConnections()
	_, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err == nil || !strings.Contains(err.Error(), "bad record MAC") {
		t.Fatalf("Get: %v, want a bad record MAC", err)
	}
	if got := backoff.Network(err); got != backoff.Transient {
		t.Errorf("Network(%v) = %v, want transient", err, got)
	}
}

// flipping is a connection that flips a bit in the last byte of each long read.
// The byte belongs to an encrypted record.
type flipping struct{ net.Conn }

func (f *flipping) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if n > 100 {
		p[n-1] ^= 1
	}
	return n, err
}

// TestNetworkReal checks the errors that net/http returns for failures of real
// connections.
func TestNetworkReal(t *testing.T) {
	// get makes a request whose every connection is served by serve.
	get := func(t *testing.T, transport *http.Transport, serve func(net.Conn)) error {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				serve(conn)
				conn.Close()
			}
		}()
		t.Cleanup(func() { listener.Close(); <-done })
		client := &http.Client{Transport: transport}
		defer transport.CloseIdleConnections()
		resp, err := client.Post("http://"+listener.Addr().String(), "", nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	h2 := func() *http.Transport {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		return transport
	}
	getURL := func(url string) func(*testing.T) error {
		return func(*testing.T) error {
			_, err := http.Get(url)
			return err
		}
	}
	// answered sends a reply to each request and closes the connection.
	answered := func(reply string) func(*testing.T) error {
		return func(t *testing.T) error {
			return get(t, &http.Transport{}, func(conn net.Conn) {
				readRequest(conn)
				io.WriteString(conn, reply)
			})
		}
	}
	// framed sends a frame after the headers of a request.
	framed := func(frame []byte) func(*testing.T) error {
		return func(t *testing.T) error {
			return get(t, h2(), func(conn net.Conn) {
				readHeaders(conn)
				conn.Write(frame)
				if frame[12] == frameReset {
					io.Copy(io.Discard, conn)
				}
			})
		}
	}

	tests := []struct {
		name string
		err  func(t *testing.T) error
		want backoff.Verdict
	}{
		{"reset", func(t *testing.T) error {
			return get(t, &http.Transport{}, func(conn net.Conn) {
				readRequest(conn)
				conn.(*net.TCPConn).SetLinger(0)
			})
		}, backoff.Transient},
		{"closed without a reply", answered(""), backoff.Transient},
		{"closed in the status line", answered("HTTP/1.1 2"), backoff.Transient},
		{"closed in the header", answered("HTTP/1.1 200 OK\r\nContent-Le"), backoff.Transient},
		{"closed in the body", answered("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), backoff.Transient},
		{"not HTTP", answered("220 mail.example.com\r\n\r\n"), backoff.Transient},
		{"no reply in time", func(t *testing.T) error {
			return get(t, &http.Transport{ResponseHeaderTimeout: time.Millisecond}, func(conn net.Conn) {
				readRequest(conn)
				io.Copy(io.Discard, conn) // until the client hangs up
			})
		}, backoff.Transient},
		{"HTTP/2 goodbye", framed(frame(frameGoAway, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0})), backoff.Transient},
		{"HTTP/2 GOAWAY with an error", framed(frame(frameGoAway, 0, []byte{0, 0, 0, 0, 0, 0, 0, 2})), backoff.Transient},
		{"HTTP/2 stream reset for an internal error", framed(frame(frameReset, 1, []byte{0, 0, 0, 2})), backoff.Transient},
		{"HTTP/2 stream reset for a flow control error", framed(frame(frameReset, 1, []byte{0, 0, 0, 3})), backoff.Permanent},
		{"HTTP/2 connection lost", func(t *testing.T) error {
			transport := h2()
			transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: time.Millisecond, PingTimeout: time.Millisecond}
			return get(t, transport, func(conn net.Conn) { io.Copy(io.Discard, conn) })
		}, backoff.Transient},
		{"refused", func(t *testing.T) error {
			// The client's end of a connection has a port without a listener,
			// which no other process can get.
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			near, err := net.Dial("tcp", listener.Addr().String())
			require.NoError(t, err)
			defer near.Close()
			_, err = http.Get("http://" + near.LocalAddr().String())
			return err
		}, backoff.Transient},
		{"certificate", func(t *testing.T) error {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			_, err := (&http.Client{Transport: &http.Transport{}}).Get(server.URL)
			return err
		}, backoff.Permanent},
		{"scheme", getURL("gs://bucket/object"), backoff.Permanent},
		{"no host", getURL("http://"), backoff.Permanent},
		{"malformed URL", getURL("http://[::1"), backoff.Permanent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.err(t)
			if err == nil {
				t.Fatal("the request succeeded")
			}
			t.Log(err)
			if got := backoff.Network(err); got != test.want {
				t.Errorf("Network = %v, want %v", got, test.want)
			}
		})
	}
}

// readRequest reads an HTTP/1 request.
func readRequest(conn net.Conn) {
	if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		io.Copy(io.Discard, req.Body)
	}
}

// TestNetworkClientTimeout checks that http.Client.Timeout, which ends one attempt, is no canceled context.
func TestNetworkClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server) // reads everything, sends no reply
			return client, nil
		}
		transport := &http.Transport{DialContext: dial}
		defer transport.CloseIdleConnections()
		_, err := (&http.Client{Transport: transport, Timeout: time.Second}).Get("http://example.com")
		if got := backoff.Network(err); err == nil || got != backoff.Transient {
			t.Errorf("timeout: Network(%v) = %v, want transient", err, got)
		}
	})
}

const (
	frameHeaders = 1
	frameReset   = 3
	frameGoAway  = 7
)

// frame returns an HTTP/2 frame after a settings frame, which must be a
// server's first.
func frame(kind byte, stream byte, payload []byte) []byte {
	const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	return append([]byte(settings), append([]byte{0, 0, byte(len(payload)), kind, 0, 0, 0, 0, stream}, payload...)...)
}

// readHeaders reads from an HTTP/2 client up to the headers of its first
// request.
func readHeaders(conn net.Conn) {
	r := bufio.NewReader(conn)
	r.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		r.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2]))
		if head[3] == frameHeaders {
			return
		}
	}
}
