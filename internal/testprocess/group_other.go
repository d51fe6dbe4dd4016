//go:build !unix

package testprocess

import (
	"os"
	"os/exec"
)

func lead(*exec.Cmd) {}

// killGroup kills the process, but not its children.
func killGroup(p *os.Process) { _ = p.Kill() }

func quit(*os.Process) {}
