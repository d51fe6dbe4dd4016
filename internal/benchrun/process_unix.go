//go:build unix

package benchrun

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// residentMiB returns the greatest resident memory that a process had. On Linux it is at
// least that of this process, whose memory the child has until it executes its program.
func residentMiB(state *os.ProcessState) float64 {
	kib := float64(state.SysUsage().(*syscall.Rusage).Maxrss)
	if runtime.GOOS == "darwin" { // in bytes instead of KiB
		kib /= 1 << 10
	}
	return kib / (1 << 10)
}

// ownGroup gives a process and its children a process group.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a process and its children.
func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
