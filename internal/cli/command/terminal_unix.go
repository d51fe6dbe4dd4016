//go:build unix

package command

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal of this process, if it has one.
type terminal struct {
	mu   sync.Mutex
	lent bool // to the group of the program
	last bool // it was lent until the output ended
	said bool // that the program waits for it
}

// backgroundPoll is how often a program in the background tries to use the terminal again.
const backgroundPoll = 200 * time.Millisecond

// paused acts on a signal that has stopped the program. The system stops a program that uses the terminal in the
// background. A program that another one has stopped stays stopped.
func (c *Command) paused(by unix.Signal) {
	switch by {
	case unix.SIGTTIN, unix.SIGTTOU:
		if !c.lendTerminal() {
			if !c.terminal.said {
				c.terminal.said = true
				c.opts.Say("the command waits for the terminal: bring gcsup to the foreground, with fg")
			}
			time.Sleep(backgroundPoll)
		}
	case unix.SIGTSTP: // Ctrl-Z
		if !c.takeTerminal(false) {
			return
		}
		suspend()
	default:
		return
	}
	_ = c.signal(unix.SIGCONT)
}

// lendTerminal gives the terminal to the program. It returns false if this process is in the background.
func (c *Command) lendTerminal() bool {
	c.terminal.mu.Lock()
	defer c.terminal.mu.Unlock()
	if !moveTerminal(unix.Getpgrp(), c.pid()) {
		return false
	}
	c.terminal.lent = true
	c.opts.Lend()
	if c.stderr != nil {
		c.stderr.setRaw(true)
	}
	return true
}

// takeTerminal takes the terminal back, and reports whether it was lent. With end, the output or the program has ended; the
// second one of the two gets the result of the first one.
func (c *Command) takeTerminal(end bool) bool {
	c.terminal.mu.Lock()
	defer c.terminal.mu.Unlock()
	if !c.terminal.lent {
		return end && c.terminal.last
	}
	c.terminal.lent, c.terminal.last = false, end
	if c.stderr != nil {
		c.stderr.setRaw(false)
	}
	moveTerminal(c.pid(), unix.Getpgrp())
	return true
}

// moveTerminal makes a group that in the foreground, if it or the group from is there.
func moveTerminal(from, to int) bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	now, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil || now != from && now != to {
		return false
	}
	signal.Ignore(unix.SIGTTOU) // otherwise a change from the background stops this process
	return unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, to) == nil
}

// suspend stops this process and the others of its job, as Ctrl-Z does, and returns when it continues. The system does
// not stop a job without a shell.
func suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(0, unix.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(time.Second):
	}
}
