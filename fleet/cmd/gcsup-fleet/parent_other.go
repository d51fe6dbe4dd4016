//go:build !linux

package main

import "os/exec"

// endWithParent does nothing: the worker keeps running if gcsup-fleet up is killed.
func endWithParent(*exec.Cmd) {}
