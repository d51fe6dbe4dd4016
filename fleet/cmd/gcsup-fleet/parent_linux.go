package main

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel send SIGTERM to the worker if gcsup-fleet up is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
