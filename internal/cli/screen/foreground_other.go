//go:build !unix

package screen

func foreground(any) bool { return true }

func notifyJobControl() jobControl { return jobControl{end: func() {}} }
