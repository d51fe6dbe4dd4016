package manifest

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// syncEvery is the minimum time between two calls of fsync.
const syncEvery = time.Second

// appender appends records to a file, and makes them durable about once per second.
type appender struct {
	path     string // for errors
	truncate func(size int64) error

	syncing sync.Mutex // held during a sync, and taken before mu
	mu      sync.Mutex
	out     output
	size    int64
	err     error // every later call returns it
	timer   *time.Timer
	due     bool // the timer runs
	dirty   bool // there are records that are not synced
	synced  time.Time
	closed  bool
}

// output is the file to which records are appended.
type output interface {
	io.WriteCloser
	Sync() error
}

// append appends a record. If it fails, the record is not in the file.
func (a *appender) append(text []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return fmt.Errorf("manifest %s: %w", a.path, ErrClosed)
	case a.err != nil:
		return a.err
	}
	if _, err := a.out.Write(text); err != nil {
		err = fmt.Errorf("manifest %s: %w", a.path, err)
		// Otherwise the next record would be appended to a part of this one.
		if terr := a.truncate(a.size); terr != nil {
			a.err = err
		}
		return err
	}
	a.size += int64(len(text))
	a.dirty = true
	if !a.due {
		a.due = true
		delay := max(0, syncEvery-time.Since(a.synced))
		if a.timer == nil {
			a.timer = time.AfterFunc(delay, a.sync)
		} else {
			a.timer.Reset(delay)
		}
	}
	return nil
}

// sync makes the records durable.
func (a *appender) sync() {
	a.syncing.Lock()
	defer a.syncing.Unlock()
	a.mu.Lock()
	a.due, a.synced = false, time.Now()
	needed := a.dirty && !a.closed
	a.dirty = false
	a.mu.Unlock()
	if !needed {
		return
	}
	if err := a.out.Sync(); err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		// Earlier writes may be lost, and a second fsync does not report that:
		// https://lwn.net/Articles/752063/.
		a.err = fmt.Errorf("manifest %s: sync: %w", a.path, err)
	}
}

// close makes the records durable, closes the file, and calls release. A second call does
// nothing.
func (a *appender) close(release func()) error {
	a.syncing.Lock()
	defer a.syncing.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	err := a.err
	if a.dirty && err == nil {
		if err = a.out.Sync(); err != nil {
			err = fmt.Errorf("manifest %s: sync: %w", a.path, err)
		}
	}
	if cerr := a.out.Close(); cerr != nil && err == nil {
		err = fmt.Errorf("manifest %s: %w", a.path, cerr)
	}
	release()
	return err
}
