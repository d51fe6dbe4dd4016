//go:build unix

package main

import (
	"os"
	"syscall"
)

// unixSignal returns a signal that only Unix systems have.
func unixSignal(name string) os.Signal {
	switch name {
	case "STOP":
		return syscall.SIGSTOP
	case "CONT":
		return syscall.SIGCONT
	case "USR2":
		return syscall.SIGUSR2
	}
	return nil
}
