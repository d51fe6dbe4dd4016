//go:build linux

package fire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu       sync.Mutex
	out, err bytes.Buffer
}

// start starts a program. It is killed at the end of the test.
func start(t *testing.T, env []string, program string, args ...string) *process {
	t.Helper()
	// The process ends even if the test is killed.
	return startIn(t, "", &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, env, program, args...)
}

// startIn starts a program in a directory.
func startIn(t *testing.T, dir string, attr *syscall.SysProcAttr, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.SysProcAttr = dir, attr
	p.cmd.Env = append(environment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = lockedWriter{p, &p.out}, lockedWriter{p, &p.err}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

// lockedWriter collects the output of a process.
type lockedWriter struct {
	p *process
	b *bytes.Buffer
}

func (w lockedWriter) Write(data []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.b.Write(data)
}

// stdout and stderr return the output so far.
func (p *process) stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// kill sends SIGKILL, and waits for the end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// code waits for the end, and returns the exit code; -1 after SIGKILL.
func (p *process) code() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// command runs a program to its end.
func command(t *testing.T, program string, args ...string) (out string, err error) {
	t.Helper()
	return start(t, nil, program, args...).result()
}

// result waits for the end of a command. It returns the standard output, and an error unless the exit
// code is 0.
func (p *process) result() (out string, err error) {
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.signal(syscall.SIGQUIT)
		<-p.done
	}
	if code := p.code(); code != 0 {
		err = fmt.Errorf("%q: exit code %d: %s%s", p.cmd.Args[1:], code, p.stdout(), p.stderr())
	}
	return p.stdout(), err
}

// environment returns the environment of the test, without the variables that configure
// the programs.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		for _, prefix := range []string{"GCSUP_", "GOOGLE_", "STORAGE_", "HTTP_PROXY=", "http_proxy=", "XDG_"} {
			if strings.HasPrefix(v, prefix) {
				return true
			}
		}
		return false
	})
}

// loopback returns an address of this machine that no other process uses, so that a
// server which is started again gets the same port.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 2+rand.IntN(250), rand.IntN(256), 1+rand.IntN(254))
}

// await polls until a condition is true. It returns false after a time.
func await(limit time.Duration, is func() bool) bool {
	return poll(10*time.Millisecond, limit, is)
}

// poll is like await, for a condition that costs more: it waits for interval between the calls.
func poll(interval, limit time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(limit); ; {
		if is() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(interval)
	}
}
