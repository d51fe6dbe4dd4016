// Package testprocess runs other processes in tests.
package testprocess

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// limit is how long Wait waits for the end of a process.
const limit = 5 * time.Minute

// TB is the part of testing.TB that a Process uses. Scripts implement it too.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Process is a process that the test started. Its methods may be called by several goroutines.
type Process struct {
	t    TB
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended, and its output is complete

	mu       sync.Mutex
	out, err bytes.Buffer
	wrote    chan struct{} // closed and replaced at each output
}

// Start starts a process, and collects its output unless the command has a writer for it. On Unix, the
// process leads a group of its own. The group is killed when the test ends. On Linux, the process is
// also killed if the test dies.
func Start(t TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, done: make(chan struct{}), wrote: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = output{p, &p.out}
	}
	if cmd.Stderr == nil {
		cmd.Stderr = output{p, &p.err}
	}
	cmd.WaitDelay = time.Minute // a child that survives the process may hold the pipes
	lead(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start a process: %v", err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		killGroup(cmd.Process)
		<-p.done
	})
	return p
}

// output is a writer that collects a stream.
type output struct {
	p *Process
	b *bytes.Buffer
}

func (o output) Write(data []byte) (int, error) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	close(o.p.wrote)
	o.p.wrote = make(chan struct{})
	return o.b.Write(data)
}

// Find waits until the standard output or the standard error matches a pattern, in which ^ and $ are the
// ends of a line. It returns the match and its groups, or nil if the process ends without one.
func (p *Process) Find(pattern string) []string {
	re := regexp.MustCompile("(?m)" + pattern)
	for ended := false; ; {
		p.mu.Lock()
		wrote := p.wrote
		m := re.FindSubmatch(p.out.Bytes())
		if m == nil {
			m = re.FindSubmatch(p.err.Bytes())
		}
		p.mu.Unlock()
		switch {
		case m != nil:
			groups := make([]string, len(m))
			for i, group := range m {
				groups[i] = string(group)
			}
			return groups
		case ended:
			return nil
		}
		select {
		case <-wrote:
		case <-p.done:
			ended = true
		}
	}
}

// Await is like Find, but fails the test if the process ends without a match, or prints none for a long
// time.
func (p *Process) Await(pattern string) []string {
	p.t.Helper()
	late := time.AfterFunc(limit, func() { killGroup(p.cmd.Process) })
	defer late.Stop()
	m := p.Find(pattern)
	if m == nil {
		p.t.Fatalf("no output matches %q: %s", pattern, p.Output())
	}
	return m
}

// Signal sends a signal to the process, and not to its children.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill kills the process with SIGKILL, but not its children, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the process is running.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the process, and returns its exit code; -1 if a signal killed it. A process
// that does not end fails the test: it prints its goroutines if it is a Go program, and its group is
// killed.
func (p *Process) Wait() int {
	p.t.Helper()
	return p.WaitFor(limit)
}

// WaitFor is Wait with a limit.
func (p *Process) WaitFor(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		quit(p.cmd.Process)
		select {
		case <-p.done:
		case <-time.After(min(limit, 10*time.Second)):
		}
		killGroup(p.cmd.Process)
		<-p.done
		p.t.Errorf("it did not end in %v: %s", limit, p.Output())
	}
	return p.State().ExitCode()
}

// State returns the state of a process that has ended.
func (p *Process) State() *os.ProcessState {
	<-p.done
	return p.cmd.ProcessState
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Args returns the command line.
func (p *Process) Args() []string { return p.cmd.Args }

// Stdout returns the standard output so far.
func (p *Process) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Stderr returns the standard error so far.
func (p *Process) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

// Output describes the process for a message: its command line, its state and its output so far.
func (p *Process) Output() string {
	state := "running"
	if !p.Alive() {
		state = p.cmd.ProcessState.String()
	}
	return fmt.Sprintf("%q: %s\n%s%s", p.cmd.Args, state, p.Stdout(), p.Stderr())
}
