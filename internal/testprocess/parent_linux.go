package testprocess

import "syscall"

// dieWithParent makes the system kill the process when this one dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
