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

// Killable starts a process, and returns a function that kills it and its children.
func Killable(c *exec.Cmd) (kill func(), err error) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	}, nil
}
