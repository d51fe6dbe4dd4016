package netconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/internal/require"
)

// writesOf counts the writes to a connection.
type writesOf struct {
	net.Conn
	n *atomic.Int32
}

func (w writesOf) Write(p []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(p)
}

// secureServer starts a server with TLS, and returns its address and a client that uses DialTLS.
func secureServer(t *testing.T, h http.HandlerFunc) (url string, tr *http.Transport, writes *atomic.Int32) {
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	writes = new(atomic.Int32)
	tr = &http.Transport{
		TLSClientConfig:     srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone(),
		TLSHandshakeTimeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return New(writesOf{c, writes}), nil
		},
	}
	tr.TLSClientConfig.NextProtos = nil
	tr.DialTLSContext = DialTLS(tr)
	t.Cleanup(tr.CloseIdleConnections)
	return srv.URL, tr, writes
}

// closable is a lender that net/http does not wrap.
type closable struct{ *lender }

func (closable) Close() error { return nil }

// put makes a request with a body.
func put(ctx context.Context, url string, body io.Reader, n int) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
	if err != nil {
		panic(err)
	}
	req.ContentLength = int64(n)
	return req
}

// TestTLS checks that a server gets the bytes of bodies over one connection, in few writes.
func TestTLS(t *testing.T) {
	got := make(chan []byte, 1)
	addrs := map[string]bool{}
	url, tr, writes := secureServer(t, func(_ http.ResponseWriter, r *http.Request) {
		addrs[r.RemoteAddr] = true
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- body
	})
	data := pattern(8<<20 + 3)
	for i, err := range []error{nil, nil, errors.ErrUnsupported} {
		before := writes.Load()
		resp, err := tr.RoundTrip(put(t.Context(), url, closable{&lender{data: data, err: err}}, len(data)))
		require.NoError(t, err)
		_ = resp.Body.Close()
		if body := <-got; !bytes.Equal(body, data) {
			t.Fatalf("request %d: the server got %d bytes that differ from the %d of the body", i, len(body), len(data))
		}
		// The body is sent in steps of 64 or 128 KiB. Without the cork there are 513 records of
		// 16 KiB.
		if n := writes.Load() - before; n > 140 {
			t.Errorf("request %d: %d writes", i, n)
		}
	}
	if len(addrs) != 1 {
		t.Errorf("%d connections, want 1", len(addrs))
	}
}

// TestTLSEarlyReply checks that a reply before the end of the body is returned, and that the
// memory of the body is returned soon although the server reads no more.
func TestTLSEarlyReply(t *testing.T) {
	gone := make(chan struct{})
	url, tr, _ := secureServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
		<-gone
	})
	defer close(gone)
	l := &lockedLender{data: pattern(1 << 20), unlocked: make(chan struct{}, 1)}
	l.unlocked <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := tr.RoundTrip(put(ctx, url, l, 1<<40))
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	began := time.Now()
	<-l.unlocked
	// tls.Conn.Close waits for 5 s if it has to send a close_notify.
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the memory was in use for %v after the reply", took)
	}
}

// TestTLSCanceled checks that a request whose server reads nothing can be canceled at once.
func TestTLSCanceled(t *testing.T) {
	gone := make(chan struct{})
	url, tr, _ := secureServer(t, func(http.ResponseWriter, *http.Request) { <-gone })
	defer close(gone)
	l := &lockedLender{data: pattern(1 << 20), unlocked: make(chan struct{}, 1)}
	l.unlocked <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	var canceled time.Time
	time.AfterFunc(500*time.Millisecond, func() { canceled = time.Now(); cancel() }) // the buffers of the system are full by then, or soon
	_, err := tr.RoundTrip(put(ctx, url, l, 1<<40))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-l.unlocked
	if took := time.Since(canceled); took > 3*time.Second {
		t.Errorf("the memory was in use for %v after the cancellation", took)
	}
}

// lockedLender is an endless body. unlocked has a value while no memory is lent.
type lockedLender struct {
	data     []byte
	unlocked chan struct{}
}

func (l *lockedLender) Read([]byte) (int, error) { return 0, errors.New("not lent") }
func (l *lockedLender) Close() error             { return nil }
func (l *lockedLender) Return()                  { l.unlocked <- struct{}{} }
func (l *lockedLender) Lend(max int) ([]byte, error) {
	<-l.unlocked
	return l.data[:min(max, len(l.data))], nil
}

// TestTLSFails checks that a failed handshake has the errors of net/http.
func TestTLSFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, tt := range []struct {
		name   string
		change func(tr *http.Transport)
		url    string // "" is that of the server
		check  func(err error) bool
	}{
		{"another host", func(tr *http.Transport) { tr.TLSClientConfig.ServerName = "other.invalid" }, "", func(err error) bool {
			var e *tls.CertificateVerificationError
			return errors.As(err, &e)
		}},
		{"an unknown authority", func(tr *http.Transport) { tr.TLSClientConfig = nil }, "", func(err error) bool {
			var e *tls.CertificateVerificationError
			return errors.As(err, &e)
		}},
		{"a server that never answers", func(tr *http.Transport) { tr.TLSHandshakeTimeout = 50 * time.Millisecond }, "https://" + silent.Addr().String(), func(err error) bool {
			var e net.Error
			return errors.As(err, &e) && e.Timeout() && !errors.Is(err, context.DeadlineExceeded)
		}},
		{"a server without TLS", func(*http.Transport) {}, "https://" + plain.Listener.Addr().String(), func(err error) bool {
			var e tls.RecordHeaderError
			return errors.As(err, &e)
		}},
		{"nothing", func(*http.Transport) {}, "", func(err error) bool { return err == nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, tr, _ := secureServer(t, func(http.ResponseWriter, *http.Request) {})
			tt.change(tr)
			if tt.url != "" {
				url = tt.url
			}
			var traced error
			starts, ends := 0, 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				TLSHandshakeStart: func() { starts++ },
				TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { ends, traced = ends+1, err },
			})
			resp, err := tr.RoundTrip(put(ctx, url, nil, 0))
			if err == nil {
				_ = resp.Body.Close()
			}
			if !tt.check(err) || starts != 1 || ends != 1 || (traced == nil) != (err == nil) {
				t.Errorf("RoundTrip: %v; traced %d and %d, %v", err, starts, ends, traced)
			}
		})
	}
}
