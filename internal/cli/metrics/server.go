package metrics

import (
	"context"
	"fmt"
	"gcsup/internal/grace"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Server serves Metrics over HTTP, without authentication.
type Server struct {
	http  http.Server
	addr  net.Addr
	ended chan struct{} // closed when Serve has returned
}

// Serve serves m on address. The caller must call Close.
func Serve(address Address, m *Metrics) (*Server, error) {
	ln, err := net.Listen("tcp", string(address))
	if err != nil {
		return nil, fmt.Errorf("--listen: %w; give another HOST:PORT, or port 0 for a free one", err)
	}
	s := &Server{
		http: http.Server{
			Handler: m.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
			ErrorLog: log.New(io.Discard, "", 0), // standard error is for the command
		},
		addr: ln.Addr(), ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(ln)
	}()
	return s, nil
}

// Addr returns the address on which s listens.
func (s *Server) Addr() string { return s.addr.String() }

// Close ends the server.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace.Scrape)
	defer cancel()
	_ = s.http.Shutdown(ctx)
	_ = s.http.Close()
	<-s.ended
}
