// Package natsserver runs a NATS server with JetStream in this process.
package natsserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
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

	// Report, if not nil, is called for each warning and error of the server. The text does not
	// contain Token. Report may be called by several goroutines at a time.
	Report func(level slog.Level, text string)
}

// ErrDiskFull means that the server could not write, because its disk is full.
var ErrDiskFull = errors.New("the disk of the queue is full: free some space, and start the command again")

// Server is a running NATS server.
type Server struct {
	opts   Options
	server *server.Server
	fatal  chan error // why the server cannot start
	failed chan error
}

// readyTimeout bounds the start of a server, which reads the queue from disk.
const readyTimeout = time.Minute

// maxStore is the limit of JetStream for its files, in bytes. The default is 75 % of what is free at the start,
// which would refuse writes later although there is space.
const maxStore = 1 << 50

// Start starts a server and waits until it accepts connections, for at most one minute. The caller
// must call Close.
func Start(o Options) (*Server, error) {
	if o.Port != 0 && o.Token == "" {
		return nil, errors.New("a NATS server with a port needs a token")
	}
	if o.Report == nil {
		o.Report = func(slog.Level, string) {}
	}
	// Create the directory first, because the server does not report why it cannot use
	// it.
	err := os.MkdirAll(o.Dir, 0o700)
	if err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s := &Server{opts: o, fatal: make(chan error, 1), failed: make(chan error, 1)}
	s.server, err = server.NewServer(&server.Options{
		ServerName: "gcsup-fleet",
		Host:       "127.0.0.1", Port: o.Port, DontListen: o.Port == 0,
		Authorization: o.Token,
		JetStream:     true, StoreDir: o.Dir,
		// The default is 75 % of the memory of the machine. The queue is stored in files.
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: maxStore,
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	s.server.SetLoggerV2(&logger{s}, false, false, false)
	go s.server.Start()
	err = fmt.Errorf("not ready after %v", readyTimeout)
	for end := time.Now().Add(readyTimeout); time.Now().Before(end); {
		if s.server.ReadyForConnections(100 * time.Millisecond) {
			err = nil
			break
		}
		if len(s.fatal) > 0 {
			break
		}
	}
	select {
	case err = <-s.fatal:
	default:
		if err == nil && !s.server.JetStreamEnabled() {
			err = errors.New("JetStream is not available")
		}
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("NATS server in %s: %w", o.Dir, err)
	}
	if at, ok := s.server.Addr().(*net.TCPAddr); ok {
		s.opts.Port = at.Port // the clients know it
	}
	return s, nil
}

// URL returns the address for clients, or "" if the server has no port.
func (s *Server) URL() string {
	if s.opts.Port == 0 {
		return ""
	}
	return fmt.Sprintf("nats://127.0.0.1:%d", s.opts.Port)
}

// Connect connects this process to the server without using a port.
func (s *Server) Connect() (*nats.Conn, error) {
	opts := []nats.Option{nats.InProcessServer(s.server), nats.MaxReconnects(-1)}
	if s.opts.Token != "" {
		opts = append(opts, nats.Token(s.opts.Token))
	}
	return nats.Connect("", opts...)
}

// Failed returns a channel that gets an error if the disk is full. A store of JetStream refuses all writes after one
// that failed. The error wraps [ErrDiskFull].
func (s *Server) Failed() <-chan error { return s.failed }

// Close stops the server and waits until it has ended. The queue stays in its
// directory.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
