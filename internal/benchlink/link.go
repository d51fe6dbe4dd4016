package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"gcsup/fakegcs"
	"gcsup/internal/badlink"
	"gcsup/internal/benchrun"
)

// endpoint is that of the emulator. Its host has all addresses of the server.
const (
	host     = "storage.test"
	endpoint = "http://" + host
)

// link is a network with an emulator in the namespace of the server.
type link struct {
	*badlink.Net
	hosts    string // file with the addresses of host, in place of /etc/hosts
	emulator *exec.Cmd
	reading  sync.WaitGroup

	mu       sync.Mutex
	requests []fakegcs.Request // in the order in which they ended
}

// newLink starts a network and an emulator.
func newLink(s *benchrun.Suite, c badlink.Conditions, congestion string) (l *link, err error) {
	l = &link{hosts: filepath.Join(s.Dir, "hosts")}
	if l.Net, err = badlink.Open(c, congestion); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Net.Close())
		}
	}()
	hosts := "127.0.0.1 localhost\n"
	for _, a := range l.Servers() {
		hosts += fmt.Sprintln(a, host)
	}
	if err := os.WriteFile(l.hosts, []byte(hosts), 0o644); err != nil {
		return nil, err
	}
	l.emulator = benchrun.Role("inside", l.ServerNamespace(), "", *gcsup, "emulator", "--addr=0.0.0.0:80", "--create-buckets", "--discard", "--no-md5", "--log=json")
	log, err := l.emulator.StderrPipe()
	if err != nil {
		return nil, err
	}
	ready, err := l.emulator.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.emulator.Start(); err != nil {
		return nil, err
	}
	var other strings.Builder // what the emulator writes besides requests
	l.reading.Go(func() { l.read(log, &other) })
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		l.reading.Wait()
		return nil, fmt.Errorf("emulator: %w\n%s", errors.Join(err, l.emulator.Wait()), other.String())
	}
	return l, nil
}

// read reads the log of the emulator to its end.
func (l *link) read(log io.Reader, other *strings.Builder) {
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r fakegcs.Request
		if json.Unmarshal(line, &r) != nil || r.Op == "" {
			other.Write(line)
			continue
		}
		l.mu.Lock()
		l.requests = append(l.requests, r)
		l.mu.Unlock()
	}
}

// client returns a command in the namespace of the client.
func (l *link) client(args ...string) *exec.Cmd {
	return benchrun.Role("inside", append([]string{l.ClientNamespace(), l.hosts}, args...)...)
}

// stop ends the emulator, and returns all requests that it received.
func (l *link) stop() ([]fakegcs.Request, error) {
	err := l.emulator.Process.Signal(os.Interrupt)
	l.reading.Wait()
	_ = l.emulator.Wait() // the interrupt is not a failure
	return l.requests, errors.Join(err, l.Net.Close())
}
