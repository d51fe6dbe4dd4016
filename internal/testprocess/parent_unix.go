//go:build unix && !linux

package testprocess

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
