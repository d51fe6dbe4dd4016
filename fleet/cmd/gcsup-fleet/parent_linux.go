package main

import (
	"os/exec"
	"syscall"
)

// endWithParent makes a worker end as after SIGTERM if gcsup-fleet up is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
