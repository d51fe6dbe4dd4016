package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

// Errors that a caller can check with [errors.Is].
var (
	// ErrLocked means that another process has the manifest open.
	ErrLocked = errors.New("manifest is in use")
	// ErrVersion means that a newer version of this program wrote the manifest. It is not changed.
	ErrVersion = errors.New("manifest was written by a newer version of this program")
	// ErrFormat means that the file is not a manifest. It is not changed.
	ErrFormat = errors.New("not a manifest")
	// ErrUnsorted means that the jobs are not in the order that Skip requires.
	ErrUnsorted = errors.New("jobs are not sorted by bucket and object name")
	// ErrClosed means that the Manifest was closed.
	ErrClosed = errors.New("manifest is closed")
)

// Manifest is an open manifest. It is safe for concurrent use.
type Manifest struct {
	path     string
	endpoint string   // of the objects; "" if it is not compared
	read     *os.File // also truncates
	unlock   func()
	before   int64 // size when it was opened; Skip reads these bytes

	finished, damaged atomic.Int64

	identity func(path string) (chunk.Identity, error) // tests replace it

	appender appender
}

// Stats counts what [Manifest.Skip] did.
type Stats struct {
	Finished int64 // jobs that were left out
	Damaged  int64 // lines that were ignored
}

// Open opens the manifest at path, or creates it. If the last line is incomplete,
// Open removes it. The caller must call Close.
//
// endpoint is the endpoint of the objects, see [upload.Uploader.Endpoint]. It is recorded.
// Skip ignores the records of other endpoints: a file that was uploaded to an emulator is
// not finished for the service. If endpoint is "", it is not recorded, and Skip reads all
// records.
//
// The error wraps [ErrLocked], [ErrVersion], [ErrFormat] or an error of the file
// system.
func Open(path, endpoint string) (_ *Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("manifest %s: %w", path, err)
		}
	}()
	if path == "" {
		return nil, errors.New("empty path")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real // so that one file has one lock
	}
	if info, err := os.Stat(abs); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrFormat)
	}
	unlock, err := lock(abs + ".lock")
	if err != nil {
		return nil, err
	}
	m := &Manifest{path: abs, endpoint: endpoint, unlock: unlock, identity: sourcefile.StatIdentity}
	if err := m.open(); err != nil {
		if m.read != nil {
			_ = m.read.Close()
		}
		unlock()
		return nil, err
	}
	return m, nil
}

// open opens the locked manifest.
func (m *Manifest) open() error {
	_, err := os.Stat(m.path)
	created := errors.Is(err, fs.ErrNotExist)
	if m.read, err = os.OpenFile(m.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	info, err := m.read.Stat()
	if err != nil {
		return err
	}
	if m.before, err = complete(m.read, info.Size()); err != nil {
		return err
	}
	if m.before < info.Size() {
		if err := m.read.Truncate(m.before); err != nil {
			return err
		}
	}
	if created {
		syncDir(filepath.Dir(m.path))
	}
	// Another handle, because Windows cannot truncate a file that is open for
	// appending.
	out, err := os.OpenFile(m.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	m.appender.path, m.appender.out, m.appender.truncate, m.appender.size = m.path, out, m.read.Truncate, m.before
	return nil
}

// syncDir makes the creation of a file durable, if the system supports it.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// complete returns the size of a manifest without an incomplete last line. It
// checks the first and the last line, so that no other file is changed.
func complete(r io.ReaderAt, size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	first := make([]byte, min(size, lineLimit))
	if _, err := r.ReadAt(first, 0); err != nil {
		return 0, err
	}
	line, _, ended := bytes.Cut(first, []byte("\n"))
	if !ended {
		line = bytes.TrimRight(line, "\x00") // some file systems leave NULs after a power loss
	}
	v, ok := lineVersion(line)
	switch {
	case ok && v > version:
		return 0, fmt.Errorf("%w: version %d, this program knows version %d", ErrVersion, v, version)
	case !ok && ended, !ok && !bytes.HasPrefix(line, []byte(head)) && !bytes.HasPrefix([]byte(head), line):
		return 0, ErrFormat
	case !ended && size > lineLimit:
		return 0, fmt.Errorf("%w: the first line is too long", ErrFormat)
	}
	end, err := lastBreak(r, size)
	if err != nil || end == 0 {
		return 0, err
	}
	start, err := lastBreak(r, end-1)
	if err != nil {
		return 0, err
	}
	last := make([]byte, min(end-start, 100))
	if _, err := r.ReadAt(last, start); err != nil {
		return 0, err
	}
	if v, ok := lineVersion(last); ok && v > version {
		return 0, fmt.Errorf("%w: version %d, this program knows version %d", ErrVersion, v, version)
	}
	return end, nil
}

// lastBreak returns the offset after the last line break of the first size bytes,
// or 0.
func lastBreak(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, lineLimit)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := r.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// Record appends the outcome of a file. If it fails, for example because the disk
// is full, the record is not in the manifest. A batch should then stop, because
// its progress is no longer kept.
//
// A file that failed, or is skipped without an identity, is not recorded if its record
// would not be valid, for example because its object name is missing or not UTF-8. A
// file without a record is tried again, like one that failed.
func (m *Manifest) Record(r Record) error {
	r.endpoint = m.endpoint
	text, err := r.encode()
	if err != nil {
		if !r.finished() {
			return nil
		}
		return fmt.Errorf("manifest %s: %w", m.path, err)
	}
	return m.appender.append(text)
}

// Close makes the records durable and releases the lock. It must not be called
// while Skip is in use. A second call returns nil.
func (m *Manifest) Close() error {
	return m.appender.close(func() {
		_ = m.read.Close()
		m.unlock()
	})
}

// Stats returns what Skip did so far.
func (m *Manifest) Stats() Stats {
	return Stats{Finished: m.finished.Load(), Damaged: m.damaged.Load()}
}
