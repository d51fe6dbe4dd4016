//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gcsup/internal/cli/exit"
	"gcsup/internal/grace"
)

// Command is a program whose standard output is read with Read. It must be closed.
type Command struct {
	opts     Options
	cmd      *exec.Cmd
	out      *os.File // standard output; write is the other end of the pipe
	write    *os.File
	stderr   *lines // nil if the program inherits a file
	terminal terminal

	begin       sync.Once
	interrupted atomic.Bool   // Read returns
	complete    atomic.Bool   // the end of the output was read
	ended       chan struct{} // closed when the program has ended; then failure is its error
	failure     error

	mu      sync.Mutex
	group   int // the ID of the process and of its group; 0 if it was not started
	stopped bool
}

// New returns a command. The first Read starts it. A program that does not exist, or is not executable, is a
// Failure.
func New(o Options) (*Command, error) {
	path, err := exec.LookPath(o.Args[0])
	if err != nil {
		return nil, &Failure{ExitCode: -1, Err: err}
	}
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: o.Args, Env: o.Env, Stdin: o.Stdin, Stdout: write,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	return &Command{opts: o, cmd: cmd, out: out, write: write, ended: make(chan struct{})}, nil
}

// start starts the program.
func (c *Command) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.write.Close()
	if c.stopped {
		c.failure = context.Canceled
	} else if err := c.run(); err != nil {
		c.failure = &Failure{ExitCode: -1, Err: err}
	}
	if c.failure != nil {
		close(c.ended)
		return
	}
	c.group = c.cmd.Process.Pid
	_ = c.cmd.Process.Release() // wait sees stops, too
	go c.wait(c.group)
}

func (c *Command) run() error {
	if f := inherits(c.opts.Stderr); f != nil {
		c.cmd.Stderr = f
		return c.cmd.Start()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	c.cmd.Stderr = write
	if err := c.cmd.Start(); err != nil {
		_ = read.Close()
		return err
	}
	c.stderr = passLines(c.opts.Stderr, read)
	return nil
}

// Read reads the output. It returns the failure of a program whose output is still open, because a child has it.
func (c *Command) Read(p []byte) (int, error) {
	c.begin.Do(c.start)
	if c.pid() == 0 {
		return 0, c.failure
	}
	for said := false; ; {
		var limit time.Time
		_ = c.out.SetReadDeadline(limit)
		if !said && c.hasEnded() {
			limit = time.Now().Add(patience)
			_ = c.out.SetReadDeadline(limit)
		}
		// Both conditions change before the deadline that interrupts the Read is set.
		switch {
		case c.interrupted.Load():
			return 0, os.ErrDeadlineExceeded
		case c.hasEnded() && c.failure != nil:
			return 0, c.failure
		}
		n, err := c.out.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			c.complete.Store(err == io.EOF)
			c.takeTerminal(err == io.EOF)
			return n, err
		}
		if !limit.IsZero() && !time.Now().Before(limit) {
			said = true
			c.opts.Say("the command has ended, but a process that it started has its output open: waiting until it is closed")
		}
	}
}

// SetReadDeadline ends the current Read and all later ones, unless t is zero.
func (c *Command) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.interrupted.Store(true)
		_ = c.out.SetReadDeadline(t)
	}
	return nil
}

// Confirm waits until the program has ended, and returns its failure. After Stop it returns an error in any case.
func (c *Command) Confirm(ctx context.Context) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for waiting := true; waiting; {
		select {
		case <-c.ended:
			waiting = false
		case <-late.C:
			c.opts.Say("the command has closed its output, but has not ended: waiting for its exit code")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.stopped:
		return context.Canceled
	}
	return c.failure
}

// wait waits until the program has ended.
func (c *Command) wait(pid int) {
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil)
	for err == unix.EINTR || err == nil && status.Stopped() {
		if err == nil {
			c.paused(status.StopSignal())
		}
		_, err = unix.Wait4(pid, &status, unix.WUNTRACED, nil)
	}
	if c.stderr != nil {
		c.stderr.await(patience)
	}
	switch interrupted := c.takeTerminal(true); {
	case err != nil:
		c.failure = fmt.Errorf("wait for the command: %w", err)
	case interrupted && (status.Signal() == unix.SIGINT || status.ExitStatus() == exit.Signal): // Ctrl-C
		c.failure = exit.WithKind(fmt.Errorf("stopped by signal: %v", unix.SIGINT), context.Canceled)
	case status.Signaled():
		c.failure = &Failure{ExitCode: -1, Signal: unix.SignalName(status.Signal())}
	case status.ExitStatus() != 0:
		c.failure = &Failure{ExitCode: status.ExitStatus()}
	}
	close(c.ended)
	_ = c.out.SetReadDeadline(time.Unix(1, 0)) // Read looks again
}

func (c *Command) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *Command) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.group
}

// signal sends a signal to the group. After the program and its output have ended, the ID may be that of another group.
func (c *Command) signal(s unix.Signal) error {
	if group := c.pid(); group != 0 && !(c.hasEnded() && c.complete.Load()) {
		return unix.Kill(-group, s)
	}
	return unix.ESRCH
}

// Stop asks the processes of the group to end.
func (c *Command) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	if c.signal(unix.SIGTERM) == nil {
		_ = c.signal(unix.SIGCONT) // a stopped process, too
	}
}

// Close ends the group, unless the program and its output have ended. It returns when no process is left.
func (c *Command) Close() {
	c.begin.Do(func() { _ = c.write.Close() }) // it never starts
	_ = c.out.Close()
	c.Stop()
	for deadline := time.Now().Add(grace.Command); c.signal(0) == nil; time.Sleep(groupPoll) {
		if time.Now().After(deadline) {
			_ = c.signal(unix.SIGKILL)
			break
		}
	}
	if c.pid() != 0 {
		select {
		case <-c.ended:
		case <-time.After(grace.Command): // the system does not end it
		}
	}
}

// groupPoll is how often Close looks whether a process of the group is left.
const groupPoll = 5 * time.Millisecond
