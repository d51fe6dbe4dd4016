//go:build !unix

package benchrun

import (
	"os"
	"os/exec"
)

// residentMiB returns 0: the greatest resident memory is not known here.
func residentMiB(*os.ProcessState) float64 { return 0 }

// Killable starts a process, and returns a function that kills it, but not its children.
func Killable(c *exec.Cmd) (kill func(), err error) {
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}, nil
}
