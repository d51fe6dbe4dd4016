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
	// Dir is the directory of the queue, which is created if necessary. Only one server at a
	// time may use it.
	Dir string

	// Port is the TCP port on 127.0.0.1. -1 chooses a free port. 0 opens no port: only this
	// process can connect.
	Port int

	// Token is the secret with which clients authenticate. It is required unless Port is 0.
	Token string
}

// Server is a running NATS server.
type Server struct {
	server *server.Server
	token  string
}

// readyTimeout bounds the start of a server, which reads the queue from disk.
const readyTimeout = time.Minute

// Start starts a server and waits until it accepts connections, for at most one minute. The caller
// must call Close.
func Start(o Options) (*Server, error) {
	if o.Port != 0 && o.Token == "" {
		return nil, errors.New("a NATS server with a port needs a token")
	}
	// Create the directory first, because the server does not report why it cannot use
	// it.
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "gcsup-fleet",
		Host:       "127.0.0.1", Port: o.Port, DontListen: o.Port == 0,
		Authorization: o.Token,
		JetStream:     true, StoreDir: o.Dir,
		// The default is 75 % of the memory of the machine. The queue is stored in files.
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

// URL returns the address for clients, or "" if the server has no port.
func (s *Server) URL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

// Connect connects this process to the server without using a port.
func (s *Server) Connect() (*nats.Conn, error) {
	opts := []nats.Option{nats.InProcessServer(s.server), nats.MaxReconnects(-1)}
	if s.token != "" {
		opts = append(opts, nats.Token(s.token))
	}
	return nats.Connect("", opts...)
}

// Memory returns the bytes of memory and disk that JetStream reports as used.
func (s *Server) Memory() (memory, disk uint64) {
	j, err := s.server.Jsz(nil)
	if err != nil {
		return 0, 0
	}
	return j.Memory, j.Store
}

// Close stops the server and waits until it has ended. The queue stays in its
// directory.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
