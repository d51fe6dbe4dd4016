//go:build unix

package main

import (
	"os"
	"syscall"
)

// unixSignal is a signal that other systems do not have.
func unixSignal(name string) os.Signal {
	switch name {
	case "STOP":
		return syscall.SIGSTOP
	case "CONT":
		return syscall.SIGCONT
	}
	return nil
}
