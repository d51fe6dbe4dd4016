//go:build unix

package testprocess

import (
	"os"
	"os/exec"
	"syscall"
)

// lead makes the process lead a group of its own.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)
}

// killGroup kills the process and its children, even if only children are left.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// quit makes a Go program print its goroutines and end.
func quit(p *os.Process) { _ = p.Signal(syscall.SIGQUIT) }
