//go:build !unix

package main

import "os"

func foreground(any) bool { return true }

func notifyContinued() (<-chan os.Signal, func()) { return nil, func() {} }
