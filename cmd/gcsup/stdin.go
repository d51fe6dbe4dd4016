package main

import (
	"io"
	"os"
	"sync"
	"time"
)

// stdio holds the standard streams of a command. Results go to out, messages for
// people go to err.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// interruptible is standard input with a Read that an upload can interrupt. A Read of
// a pipe or a terminal blocks until there is input, even if the file is closed. A
// goroutine therefore reads the file, starting with the first Read of interruptible.
// The goroutine stays blocked if the upload ends first.
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

// SetReadDeadline ends the current Read and all later ones, unless t is zero.
// Package upload uses only the zero time and a time in the past.
func (i *interruptible) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		_ = i.read.CloseWithError(os.ErrDeadlineExceeded)
	}
	return nil
}

// pump copies standard input to the pipe.
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
