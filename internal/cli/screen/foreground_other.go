//go:build !unix

package screen

import "os"

func foreground(any) bool { return true }

func notifyContinued() (<-chan os.Signal, func()) { return nil, func() {} }
