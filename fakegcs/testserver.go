package fakegcs

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// TB has the methods of testing.TB that [NewServer] uses. It is a separate
// interface, so that a program with an emulator does not link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// TestServer is a [Server] that listens on a port of the loopback interface.
type TestServer struct {
	*Server
	// URL is the base URL, "http://127.0.0.1:port", for STORAGE_EMULATOR_HOST or
	// the endpoint setting of a client.
	URL string

	http   *http.Server
	client *http.Client
	once   sync.Once
	err    error // of the first Close
}

// NewServer starts a server that is closed when the test t ends. A failure to start
// or close it fails the test. If t is nil, as in an example, NewServer panics if it
// fails, and the caller must close the server.
//
// Inside a testing/synctest bubble, use [New] and package memnet.
func NewServer(t TB, opts *Options) *TestServer {
	if t != nil {
		t.Helper()
	}
	s, err := newTestServer(opts)
	switch {
	case t != nil && err != nil:
		t.Fatalf("%v", err)
	case err != nil:
		panic(err)
	case t != nil:
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Fatalf("fakegcs: close: %v", err)
			}
		})
	}
	return s
}

func newTestServer(opts *Options) (*TestServer, error) {
	gcs, err := New(opts)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if ln, err = net.Listen("tcp6", "[::1]:0"); err != nil {
			return nil, fmt.Errorf("fakegcs: no port on the loopback interface: %w", errors.Join(err, gcs.Close()))
		}
	}
	s := &TestServer{
		Server: gcs, URL: "http://" + ln.Addr().String(),
		http:   &http.Server{Handler: gcs, ErrorLog: slog.NewLogLogger(gcs.log.Handler(), slog.LevelWarn)},
		client: &http.Client{Transport: &http.Transport{}},
	}
	go s.http.Serve(ln)
	return s, nil
}

// Client returns an HTTP client for the server, whose connections Close closes.
// It uses no proxy.
func (s *TestServer) Client() *http.Client { return s.client }

// Close ends the server: first the requests that are stalled or running, then
// the connections. Later calls return the error of the first.
func (s *TestServer) Close() error {
	s.once.Do(func() {
		s.err = errors.Join(s.Server.Close(), s.http.Close())
		s.client.CloseIdleConnections()
		if tr, ok := http.DefaultTransport.(*http.Transport); ok { // most clients use it
			tr.CloseIdleConnections()
		}
	})
	return s.err
}
