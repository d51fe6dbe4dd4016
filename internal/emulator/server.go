package emulator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"gcsup/fakegcs"
)

// Server is an emulator and its HTTP server.
type Server struct {
	server *fakegcs.Server
	http   *http.Server
}

// New returns a server that does not serve yet. If another process uses the directory, the
// error wraps [fakegcs.ErrInUse].
func New(opts fakegcs.Options) (*Server, error) {
	server, err := fakegcs.New(&opts)
	switch {
	case errors.Is(err, fakegcs.ErrInUse):
		return nil, inUseError(opts.Dir)
	case err != nil:
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return &Server{server, &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}}, nil
}

// inUseError reports that another process uses the directory.
type inUseError string

func (dir inUseError) Error() string {
	return fmt.Sprintf("emulator: another process uses %s; wait for it, or give another directory", string(dir))
}

func (inUseError) Is(target error) bool { return target == fakegcs.ErrInUse }

// secure makes e serve TLS. It returns the path of the authority's certificate.
func (e *Server) secure(written *files, http2 bool, address string) (ca string, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	cert, pem, err := fakegcs.NewCertificate("localhost", "127.0.0.1", "::1", host)
	if err != nil {
		return "", fmt.Errorf("emulator: %w", err)
	}
	if ca, err = written.write("ca.pem", pem, 0o644); err != nil {
		return "", err
	}
	e.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	e.http.Protocols = new(http.Protocols)
	e.http.Protocols.SetHTTP1(true)
	e.http.Protocols.SetHTTP2(http2)
	return ca, nil
}

// Serve serves on ln in the background. The channel receives the error if the server
// fails.
func (e *Server) Serve(ln net.Listener) <-chan error {
	failed := make(chan error, 1)
	go func() {
		serve := e.http.Serve
		if e.http.TLSConfig != nil {
			serve = func(ln net.Listener) error { return e.http.ServeTLS(ln, "", "") }
		}
		if err := serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("emulator: %w", err)
		}
	}()
	return failed
}

// Close ends active requests like broken connections: the server keeps the bytes that
// it has received.
func (e *Server) Close() error {
	return errors.Join(e.server.Close(), e.http.Close())
}
