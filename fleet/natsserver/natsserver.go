// Package natsserver runs a NATS server with JetStream in this process.
package natsserver

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Options configure a server.
type Options struct {
	// Dir keeps the queue. One server at a time uses it.
	Dir string

	// Port is the port of 127.0.0.1 to listen on; -1 is a free one. 0 listens on no port:
	// only this process can connect.
	Port int

	// Token is what clients must give. It is required with a port.
	Token string
}

// Server is a running server.
type Server struct {
	server *server.Server
	token  string
}

// readyTimeout bounds the start of a server, which reads the queue.
const readyTimeout = time.Minute

// Start starts a server. The caller must call Close.
func Start(o Options) (*Server, error) {
	if o.Port != 0 && o.Token == "" {
		return nil, errors.New("a NATS server with a port needs a token")
	}
	// The server would not report why it cannot use the directory.
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "gcsup-fleet",
		Host:       "127.0.0.1", Port: o.Port, DontListen: o.Port == 0,
		Authorization: o.Token,
		JetStream:     true, StoreDir: o.Dir,
		// 80 % of the memory of the machine otherwise. The queue is in files.
		JetStreamMaxMemory: 64 << 20,
		NoSigs:             true, NoLog: true,
	})
	if err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(readyTimeout) || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, fmt.Errorf("NATS server: not ready after %v, or its directory %s cannot be used", readyTimeout, o.Dir)
	}
	return &Server{server: s, token: o.Token}, nil
}

// URL returns the address for clients, or "" if there is no port.
func (s *Server) URL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

// Connect connects this process to the server, without a port.
func (s *Server) Connect() (*nats.Conn, error) {
	opts := []nats.Option{nats.InProcessServer(s.server), nats.MaxReconnects(-1)}
	if s.token != "" {
		opts = append(opts, nats.Token(s.token))
	}
	return nats.Connect("", opts...)
}

// Memory returns the bytes of memory that JetStream reports as used, and of disk.
func (s *Server) Memory() (memory, disk uint64) {
	j, err := s.server.Jsz(nil)
	if err != nil {
		return 0, 0
	}
	return j.Memory, j.Store
}

// Close stops the server. The queue stays in its directory.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
