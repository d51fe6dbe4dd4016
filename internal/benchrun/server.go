package benchrun

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/badlink"
)

// Server describes the process that the ways send to: an emulator, which checks the CRC32C
// of what it receives, and keeps no bytes.
type Server struct {
	TLS             bool          // without HTTP/2
	Latency         time.Duration // of each reply
	MD5             bool          // for clients that compare it
	Rate, TotalRate int64         // in bytes per second of each connection and of all

	// Congestion, if set, puts a link between the ways and the server: a network with Link's
	// conditions, whose connections have this congestion control, or with [Chosen] the one that they choose. It
	// needs Linux and root.
	// The server keeps its requests for [Report].
	Congestion string
	Link       badlink.Conditions
}

// Chosen is a Server.Congestion.
const Chosen = "chosen"

// serverRole is the role of a server.
const serverRole = "server"

// linkHost is the host of a server behind a link. It has all addresses of the server.
const linkHost = "storage.test"

// Report is what an emulator has received.
type Report struct {
	fakegcs.Stats
	Objects int               // in the bucket bench
	Log     []fakegcs.Request // behind a link only, in the order in which they ended
}

// serve is the role of a server. Its arguments are the Server as JSON, and the file for the
// certificate that clients must trust.
func serve(args []string) error {
	var s Server
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	keep := -1
	if s.Congestion != "" {
		keep = 100_000
	}
	emulator, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true, Discard: true, NoMD5: !s.MD5, Latency: s.Latency, Rate: s.Rate, TotalRate: s.TotalRate, KeepRequests: keep})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	hs := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		emulator.ServeHTTP(w, r)
	})}
	address := "127.0.0.1:0"
	if s.Congestion != "" {
		address = "0.0.0.0:80"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	endpoint := "http://" + l.Addr().String()
	if s.Congestion != "" {
		endpoint = "http://" + linkHost
	}
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
	go func() { _ = hs.Serve(l) }()
	defer hs.Close()
	return Answer(endpoint, func(question string) any {
		if question == last {
			_ = hs.Close()
			running.Wait()
		}
		objects, _ := emulator.ListObjects("bench", "") // there is no bucket at first
		return Report{Stats: emulator.Stats(), Objects: len(objects), Log: emulator.Requests()}
	})
}

// last is the question for the report of a server that has ended all requests.
const last = "last"

// Answer is what a role does that is a [Process]: it prints its endpoint when it is ready,
// and an answer for each line of the standard input. It returns when the input ends.
func Answer(endpoint string, answer func(question string) any) error {
	fmt.Println(endpoint)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := json.NewEncoder(os.Stdout).Encode(answer(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Process is a role that runs beside the ways, such as a server.
type Process struct {
	Endpoint string
	Link     *badlink.Net // nil if there is none

	hosts     string // behind a link: file with the addresses of the server, in place of /etc/hosts
	authority string // file of the certificate that clients must trust
	cmd       *exec.Cmd
	stdin     io.WriteCloser
	stdout    io.Reader
}

// start starts a server, and its link.
func (s *Suite) start(server Server) (*Process, error) {
	description, err := json.Marshal(server)
	if err != nil {
		return nil, err
	}
	p := &Process{authority: filepath.Join(s.Dir, "authority.pem"), hosts: filepath.Join(s.Dir, "hosts")}
	p.cmd = Role(serverRole, string(description), p.authority)
	if server.Congestion == "" {
		return p, p.begin(p.cmd.Start)
	}
	congestion := server.Congestion
	if congestion == Chosen {
		congestion = ""
	}
	if p.Link, err = badlink.Open(server.Link, congestion); err != nil {
		return nil, fmt.Errorf("this comparison cannot run here, it needs Linux and root: %w", err)
	}
	hosts := "127.0.0.1 localhost\n"
	for _, a := range p.Link.Servers() {
		hosts += fmt.Sprintln(a, linkHost)
	}
	if err := os.WriteFile(p.hosts, []byte(hosts), 0o644); err != nil {
		return nil, err
	}
	return p, p.begin(func() error { return p.Link.StartServer(p.cmd) })
}

// StartRole starts a role that calls [Answer]. It ends with the benchmark.
func (s *Suite) StartRole(name string, args ...string) (*Process, error) {
	p := &Process{cmd: Role(name, args...)}
	err := p.begin(p.cmd.Start)
	if err == nil {
		s.roles = append(s.roles, p)
	}
	return p, err
}

// begin starts the process, and waits until it is ready.
func (p *Process) begin(start func() error) (err error) {
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := start(); err != nil {
		return err
	}
	if _, err := fmt.Fscanln(p.stdout, &p.Endpoint); err != nil {
		return fmt.Errorf("process of the benchmark: %w", err)
	}
	return nil
}

// Ask stores the answer of a process in v.
func (p *Process) Ask(question string, v any) error {
	if _, err := fmt.Fprintln(p.stdin, question); err != nil {
		return err
	}
	return json.NewDecoder(p.stdout).Decode(v)
}

// Report returns what an emulator has received in the requests that have ended.
func (p *Process) Report() (Report, error) {
	var r Report
	err := p.Ask("", &r)
	return r, err
}

// LastReport ends the requests to an emulator, which refuses others then, and returns what it
// has received.
func (p *Process) LastReport() (Report, error) {
	var r Report
	err := p.Ask(last, &r)
	return r, err
}

// stop ends the process, and its link.
func (p *Process) stop() {
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
	if p.Link != nil {
		_ = p.Link.Close()
	}
}
