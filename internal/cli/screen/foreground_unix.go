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

// notifyJobControl returns the signals that stop this process, as by Ctrl-Z, continue it, and report
// another size of the terminal.
func notifyJobControl() jobControl {
	stops, continued, resized := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	signal.Notify(resized, syscall.SIGWINCH)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(stops, syscall.SIGTSTP)
	}
	return jobControl{
		stops: stops, stop: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) },
		continued: continued, resized: resized,
		end: func() {
			signal.Stop(stops)
			signal.Stop(continued)
			signal.Stop(resized)
		},
	}
}
