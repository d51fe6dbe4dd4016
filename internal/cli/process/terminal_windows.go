package process

import (
	"os"

	"golang.org/x/sys/windows"
)

// escapes makes the console understand escape sequences. Consoles before Windows
// 10 cannot.
func escapes(f *os.File) bool {
	h := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	const want = windows.ENABLE_PROCESSED_OUTPUT | windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING
	return mode&want == want || windows.SetConsoleMode(h, mode|want) == nil
}
