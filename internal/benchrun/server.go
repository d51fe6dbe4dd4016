package benchrun

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gcsup/fakegcs"
)

// Server describes the process that the ways send to.
type Server struct {
	// Emulator selects the emulator, which discards the bytes. Otherwise the server can
	// only receive uploads, and checks their CRC32C.
	Emulator bool

	TLS     bool // without HTTP/2
	Latency time.Duration

	MD5             bool  // of the emulator, for clients that compare it
	Rate, TotalRate int64 // of the emulator, in bytes per second of each connection and of all
}

// handler returns the handler of the server.
func (s Server) handler() (http.Handler, error) {
	if !s.Emulator {
		return newChecker(s.Latency), nil
	}
	return fakegcs.New(&fakegcs.Options{CreateBuckets: true, Discard: true, NoMD5: !s.MD5, Latency: s.Latency, Rate: s.Rate, TotalRate: s.TotalRate, KeepRequests: -1})
}

// serverRole is the role of the server process.
const serverRole = "server"

// serve runs a server until standard input ends. Its arguments are the Server as JSON, and
// the file for the certificate that clients must trust. It prints its endpoint when it is
// ready.
func serve(args []string) error {
	var s Server
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	handler, err := s.handler()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	endpoint := "http://" + l.Addr().String()
	if s.TLS {
		certificate, authority, err := fakegcs.NewCertificate("127.0.0.1")
		if err != nil {
			return err
		}
		if err := os.WriteFile(args[1], authority, 0o600); err != nil {
			return err
		}
		endpoint = "https://" + l.Addr().String()
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	fmt.Println(endpoint)
	hs := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = hs.Close()
	}()
	if err := hs.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Process is a running server.
type Process struct {
	Endpoint string

	authority string // file of the certificate that clients must trust
	cmd       *exec.Cmd
	stdin     io.Closer
}

// Start starts a server.
func (s *Suite) Start(server Server) (*Process, error) {
	description, err := json.Marshal(server)
	if err != nil {
		return nil, err
	}
	p := &Process{authority: filepath.Join(s.Dir, "authority.pem")}
	p.cmd = Role(serverRole, string(description), p.authority)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(out, &p.Endpoint); err != nil {
		p.Stop()
		return nil, fmt.Errorf("server: %w", err)
	}
	return p, nil
}

// Stop ends the server.
func (p *Process) Stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}
