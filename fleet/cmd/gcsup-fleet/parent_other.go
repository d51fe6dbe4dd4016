//go:build !linux

package main

import "os/exec"

// endWithParent does nothing: the worker ends when the connection to the server is closed.
func endWithParent(*exec.Cmd) {}
