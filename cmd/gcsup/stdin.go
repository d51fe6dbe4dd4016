package main

import (
	"io"
	"os"
	"sync"
	"time"
)

// interruptible is standard input whose Read can be ended by an upload. A Read of
// a pipe or a terminal cannot: it lasts until there is input, and closing the
// file does not end it. So a goroutine does that Read, from the first Read of
// interruptible on, and is left behind when it is interrupted.
type interruptible struct {
	in    io.Reader
	begin sync.Once
	read  *io.PipeReader
	write *io.PipeWriter
}

func newInterruptible(in io.Reader) *interruptible {
	r, w := io.Pipe()
	return &interruptible{in: in, read: r, write: w}
}

func (i *interruptible) Read(p []byte) (int, error) {
	i.begin.Do(func() { go i.pump() })
	return i.read.Read(p)
}

// SetReadDeadline ends a Read, now and for good, if t is past. Package upload
// uses no other time but the zero one, which does nothing.
func (i *interruptible) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		_ = i.read.CloseWithError(os.ErrDeadlineExceeded)
	}
	return nil
}

// pump is the goroutine.
func (i *interruptible) pump() {
	buf := make([]byte, 256<<10)
	for {
		n, err := i.in.Read(buf)
		if n > 0 {
			if _, werr := i.write.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			_ = i.write.CloseWithError(err)
			return
		}
	}
}
