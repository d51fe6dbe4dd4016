//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreground reports whether this process may draw on the terminal w. It may not if
// the shell runs it in the background.
func foreground(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return true
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: it is not the controlling terminal
}

// notifyContinued returns a channel that receives a value when the process continues
// after it was stopped, as by Ctrl-Z.
func notifyContinued() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCONT)
	return signals, func() { signal.Stop(signals) }
}
