//go:build !unix

package benchrun

import (
	"os"
	"os/exec"
)

// residentMiB returns 0: the greatest resident memory is not known here.
func residentMiB(*os.ProcessState) float64 { return 0 }

// ownGroup does nothing: there are no process groups.
func ownGroup(*exec.Cmd) {}

// killGroup kills a process, but not its children.
func killGroup(c *exec.Cmd) { _ = c.Process.Kill() }
