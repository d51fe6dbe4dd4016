package sourcefile

import (
	"fmt"
	"gcsup/chunk"
	"gcsup/internal/regular"
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
func Inspect(path string) (chunk.Identity, Writers, error) {
	f, err := regular.Open(path)
	if err != nil {
		return chunk.Identity{}, WritersUnknown, err
	}
	defer f.Close()
	return inspect(f)
}

func inspect(f *os.File) (chunk.Identity, Writers, error) {
	writers := WritersUnknown
	if fileSystemOf(f).local {
		writers = findWriters(f)
	}
	id, err := identifyOpen(f)
	if err != nil {
		return chunk.Identity{}, WritersUnknown, err
	}
	return id, writers, nil
}
