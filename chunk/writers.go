package chunk

import (
	"fmt"
	"os"
)

// Writers describes whether a process has a file open for writing.
type Writers int

const (
	// WritersUnknown means that the system does not tell: another system than Linux, a file
	// system that is not local, or a file of another user.
	WritersUnknown Writers = iota
	NoWriters              // no process has the file open for writing
	HasWriters             // a process has the file open, or mapped, for writing
)

// String returns the meaning of w in a few words.
func (w Writers) String() string {
	switch w {
	case WritersUnknown:
		return "unknown"
	case NoWriters:
		return "not open for writing"
	case HasWriters:
		return "open for writing"
	}
	return fmt.Sprintf("Writers(%d)", int(w))
}

// Inspect returns the identity of the regular file at path, and whether a process has it open for
// writing. If there is no writer, none could open the file before its identity was taken. A process
// that opens the file for writing waits some microseconds for Inspect. The errors
// are those of [Open].
func Inspect(path string) (Identity, Writers, error) {
	f, err := openRegular(path)
	if err != nil {
		return Identity{}, WritersUnknown, err
	}
	defer f.Close()
	return inspect(f)
}

func inspect(f *os.File) (Identity, Writers, error) {
	writers := WritersUnknown
	if fileSystemOf(f).local {
		writers = findWriters(f)
	}
	info, err := f.Stat()
	if err != nil {
		return Identity{}, WritersUnknown, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	id, err := identify(f, info)
	if err != nil {
		return Identity{}, WritersUnknown, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return id, writers, nil
}

// openRegular opens the regular file at path.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // opening a FIFO blocks
	if err != nil {
		return nil, openError{err}
	}
	if err := checkRegular(path, info.Mode()); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, openError{err}
	}
	return f, nil
}
