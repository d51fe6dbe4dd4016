//go:build unix

package command

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// lines passes the standard error of a program on in whole lines, because a display is redrawn between them.
type lines struct {
	w    io.Writer
	done chan struct{} // closed when the standard error has ended

	mu   sync.Mutex
	rest []byte // without a line end
	raw  bool   // the program has the terminal: pass everything on at once
}

// passLines passes r on to w until it ends, and closes it.
func passLines(w io.Writer, r *os.File) *lines {
	l := &lines{w: w, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer r.Close()
		_, _ = io.Copy(l, r)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.rest) > 0 {
			_, _ = l.w.Write(append(l.rest, '\n'))
		}
	}()
	return l
}

// maxLine is the size of a line in bytes from which on it is broken.
const maxLine = 64 << 10

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	if len(l.rest) > maxLine && !bytes.ContainsRune(l.rest, '\n') {
		l.rest = append(l.rest, '\n')
	}
	l.pass()
	return len(p), nil
}

// pass writes the whole lines, or everything.
func (l *lines) pass() {
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if l.raw {
		end = len(l.rest)
	}
	if end > 0 {
		_, _ = l.w.Write(l.rest[:end])
		l.rest = append(l.rest[:0], l.rest[end:]...)
	}
}

// setRaw passes everything on at once from now on, or whole lines.
func (l *lines) setRaw(raw bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raw = raw
	l.pass()
}

// await waits until the standard error has ended, but not longer than limit: another process may have it.
func (l *lines) await(limit time.Duration) {
	select {
	case <-l.done:
	case <-time.After(limit):
	}
}
